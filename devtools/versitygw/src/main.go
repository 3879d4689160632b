// versitygw: VersityGW over a folder, with the options of its own command and its subcommand posix.
// Other backends, the integration tests and the administration are left out, which its own command compiles too.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	// The defaults are those of VersityGW's own command.
	config := embedgw.Config{
		MaxConnections:    250000,
		MaxRequests:       100000,
		MultipartMaxParts: 10000,
		IAMCacheTTL:       120,
		IAMCachePrune:     3600,
		Version:           "s3sink",
	}
	var port string
	gateway := flag.NewFlagSet("versitygw", flag.ContinueOnError)
	gateway.StringVar(&config.RootUserAccess, "access", "", "access key of the owner")
	gateway.StringVar(&config.RootUserSecret, "secret", "", "secret key of the owner")
	gateway.StringVar(&config.Region, "region", "us-east-1", "region")
	gateway.StringVar(&port, "port", ":7070", "host:port to listen on")
	gateway.StringVar(&config.CertFile, "cert", "", "file of the certificate for TLS")
	gateway.StringVar(&config.KeyFile, "key", "", "file of the key for TLS")
	gateway.StringVar(&config.IAMDir, "iam-dir", "", "folder of further users")
	gateway.BoolVar(&config.KeepAlive, "keep-alive", false, "keep connections open")
	gateway.BoolVar(&config.Quiet, "quiet", false, "log no requests")
	if err := gateway.Parse(args); err != nil {
		return err
	}
	config.Ports = []string{port}
	if gateway.Arg(0) != "posix" {
		return fmt.Errorf("usage: versitygw [options] posix [options] FOLDER")
	}
	backend, err := folder(gateway.Args()[1:])
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, backend, &config)
}

func folder(args []string) (*posix.Posix, error) {
	options := posix.PosixOpts{
		Concurrency:         5000,
		CopyObjectThreshold: 5 << 30,
		IOBufferSize:        1 << 20,
	}
	options.SetNewDirPerm(0o755)
	options.SetNewFilePerm(0o644)
	flags := flag.NewFlagSet("posix", flag.ContinueOnError)
	flags.StringVar(&options.VersioningDir, "versioning-dir", "", "folder of former versions")
	flags.StringVar(&options.SideCarDir, "sidecar", "", "folder of metadata, for file systems without extended attributes")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() != 1 {
		return nil, fmt.Errorf("usage: versitygw [options] posix [options] FOLDER")
	}
	root := flags.Arg(0)
	if options.SideCarDir != "" {
		sidecar, err := meta.NewSideCar(options.SideCarDir)
		if err != nil {
			return nil, err
		}
		return posix.New(root, sidecar, options)
	}
	if err := (meta.XattrMeta{}).Test(root); err != nil {
		return nil, err
	}
	return posix.New(root, meta.XattrMeta{}, options)
}
