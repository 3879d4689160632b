// schema-registry: franz-go's srfake, an implementation of the Confluent Schema Registry's REST API in memory, as a
// program. Beside that API:
//
//	POST /test/reset          deletes all schemas
//	POST /test/seed           registers a schema with the subject, version and id of the request
//	PUT  /test/answers        answers the next requests for a path with a given status and body
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

type options struct {
	listen, authorization, certificate, key, clientCA string
}

// answer is a canned answer to the next `count` requests whose path (with its query) starts with `path`.
type answer struct {
	Path        string `json:"path"`
	Count       int    `json:"count"`
	Status      int    `json:"status"`
	ContentType string `json:"contentType"`
	Body        string `json:"body"`
}

type seed struct {
	Subject string    `json:"subject"`
	Version int       `json:"version"`
	ID      int       `json:"id"`
	Schema  sr.Schema `json:"schema"`
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen at")
	flag.StringVar(&o.authorization, "authorization", "", "value of the Authorization header that requests must have")
	flag.StringVar(&o.certificate, "cert", "", "certificate of the server")
	flag.StringVar(&o.key, "key", "", "private key of the server")
	flag.StringVar(&o.clientCA, "client-ca", "", "certificate authority of the clients' certificates")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, o options) error {
	var settings []srfake.Option
	if o.authorization != "" {
		settings = append(settings, srfake.WithAuth(o.authorization))
	}
	registry := srfake.NewRegistry(settings...)
	control := &control{registry: registry, authorization: o.authorization}
	registry.Intercept(control.handle)
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	if o.certificate != "" {
		config, err := tlsConfig(o)
		if err != nil {
			return err
		}
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{Handler: registry.Handler()}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func tlsConfig(o options) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.certificate, o.key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if o.clientCA != "" {
		text, err := os.ReadFile(o.clientCA)
		if err != nil {
			return nil, err
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate", o.clientCA)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// control handles the requests of the tests, and gives the answers that they have set. A request for such an answer
// needs the authorization, too; without it the registry rejects the request.
type control struct {
	registry      *srfake.Registry
	authorization string
	lock          sync.Mutex
	answers       []*answer
}

func (c *control) handle(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case "/test/reset":
		c.registry.Reset()
	case "/test/seed":
		c.seed(w, r)
	case "/test/answers":
		c.setAnswers(w, r)
	default:
		return c.answered(w, r)
	}
	return true
}

func (c *control) seed(w http.ResponseWriter, r *http.Request) {
	var s seed
	defer func() {
		if problem := recover(); problem != nil { // SeedSchema panics for a schema that exists
			http.Error(w, fmt.Sprint(problem), http.StatusConflict)
		}
	}()
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.registry.SeedSchema(s.Subject, s.Version, s.ID, s.Schema)
}

func (c *control) setAnswers(w http.ResponseWriter, r *http.Request) {
	var answers []*answer
	if err := json.NewDecoder(r.Body).Decode(&answers); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.answers = answers
}

func (c *control) answered(w http.ResponseWriter, r *http.Request) bool {
	if c.authorization != "" && r.Header.Get("Authorization") != c.authorization {
		return false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, each := range c.answers {
		if each.Count > 0 && strings.HasPrefix(r.URL.RequestURI(), each.Path) {
			each.Count--
			w.Header().Set("Content-Type", each.ContentType)
			w.WriteHeader(each.Status)
			_, _ = w.Write([]byte(each.Body))
			return true
		}
	}
	return false
}
