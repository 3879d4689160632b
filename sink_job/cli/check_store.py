"""`s3sink check-store`: checks whether a sink can use a bucket. Writes below the ledger prefix, and cleans up."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sink_job.api.errors import InvalidSpec, SecretNotFound
from sink_job.cli.common import OUTPUT_HELP, add_sink, read_sink, secret_dirs
from sink_job.driver.secret_registry import SECRETS

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.cli.store_checks import Check

ATTEMPTS_S: Final = 15.0
"""Time for retries of a request to the store, in s. A sink retries for longer."""

DESCRIPTION: Final = """\
Checks whether a sink can use the bucket of SINK.yaml or of --bucket. Every sink
runs the first four checks when it starts, and stops if one of them fails.

  access              the bucket exists and the credentials, or the role that is
                      assumed with them, may list it
  clock               the clocks of host and store are at most 5 minutes apart
  object lock         the bucket has no default retention, which would lock the
                      ledger; with objectLock, an upload with it can be started
  conditional writes  a put and a completed upload do not replace an object
  multipart upload    an object with parts of different sizes is stored, or with
                      parts of one size (equalParts); without that field the
                      check reports whether the store needs it
  encryption          a put and a completed upload are encrypted as the manifest
                      has it, and can be read (only with encryption)
  object attributes   storageClass, acl and tags are accepted, and storageClass
                      and tags applied (only if the manifest has one of them)
  offset tags         an object gets tags with its offsets (only with offsetTags)
  checksums           a part with a wrong CRC64NVME checksum is rejected
  lifecycle rules     the bucket's rules do not remove uploads or the ledger

With s3.ledger, object lock, conditional writes, encryption and lifecycle rules
are checked for its bucket, too (ledger: ...), and access for both. If the
objects' bucket has a default retention, the checks that would leave versions of
objects there are skipped.

The command writes below TOPICS_DIR/_s3sink/, uploads 11 MiB and deletes its
files. It does not read or change the ledger, so the sink may be running. A
WARNING does not prevent a sink from running.
"""

EXIT_CODES: Final = """\
exit codes:
   0  a sink can use the store
   1  unexpected error (use --debug for a stack trace)
   2  invalid manifest or command line
   7  a check failed (bucket not found, access denied, clock skew, unsupported
      store), or a secret is missing
  75  transient error, safe to retry: the store did not respond in time
"""

_NAME: Final = "check-store"
_KEYS: Final = "check-store-keys"
_CA: Final = "check-store-ca"
_OF_BUCKET: Final = ("endpoint", "region", "path_style", "topics_dir", "credentials", "ca_file")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        _NAME,
        help="check whether a sink can use a bucket",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser, required=False)
    bucket = parser.add_argument_group("a bucket without a manifest")
    bucket.add_argument("--bucket", metavar="NAME", help="the bucket, instead of SINK.yaml")
    bucket.add_argument("--endpoint", metavar="URL", help="URL of the store; default: Amazon S3")
    bucket.add_argument("--region", metavar="NAME", help="region of the bucket; default: from the environment")
    bucket.add_argument(
        "--path-style", action="store_true", help="put the bucket into the path of URLs instead of the host name"
    )
    bucket.add_argument("--topics-dir", metavar="PREFIX", help="prefix to write below; default: topics")
    bucket.add_argument(
        "--credentials",
        metavar="DIR",
        type=Path,
        help="directory with the files AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; default: AWS's default chain",
    )
    bucket.add_argument("--ca-file", metavar="FILE", type=Path, help="CA certificates (PEM) to verify the store")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help=OUTPUT_HELP)
    parser.add_argument("--json", action="store_const", const="json", dest="output", help="the same as -o json")


def run(args: argparse.Namespace) -> int:
    """Prints the checks; returns 0, or the exit code of the first failed check.

    Raises InvalidSpec, SecretNotFound and ConfigurationError before the first check.
    """
    sink = _sink(args)
    secrets = secret_dirs(args, sink)

    from sink_job.cli.store_checks import check_store, exit_code
    from sink_job.ledger.first_claim.ledger_place import home_of, ledger_root
    from sink_job.s3 import RetryPolicy, S3Settings, connect

    settings = S3Settings.of(sink.spec, secrets)
    retry, place = RetryPolicy(max_elapsed_s=ATTEMPTS_S), settings.ledger
    if place is not None:
        place = dataclasses.replace(place, settings=dataclasses.replace(place.settings, retry=retry))
    s3 = connect(dataclasses.replace(settings, retry=retry, ledger=place))
    prefix = home_of(s3, ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id))
    checks = check_store(
        s3,
        prefix,
        lambda: time.time_ns() // 1_000_000,
        has_attributes=bool(settings.attributes),
        has_encryption=bool(settings.encryption or settings.customer_keys),
        equal_parts=sink.spec.s3.equal_parts,
        has_lock=settings.lock is not None,
        offset_tags=sink.spec.s3.on_tag_error if settings.offset_tags else None,
    )
    where = f"{s3.url}/{prefix} at {settings.endpoint or 'Amazon S3'}"
    if place is not None:
        where += f", ledger at {place.settings.url}/{place.front}{prefix}"
    if args.output == "json":
        done: Sequence[Check] = list(checks)
        print(as_json(where, done))
    else:
        done = _print_table(where, checks)
    return exit_code(done)


def as_json(where: str, checks: Sequence[Check]) -> str:
    """The checks as JSON: `store`, `usable` and `checks`."""
    import msgspec

    from sink_job.cli.store_checks import exit_code

    found = {"store": where, "usable": exit_code(checks) == 0, "checks": checks}
    return SECRETS(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())


def _print_table(where: str, checks: Iterable[Check]) -> Sequence[Check]:
    print(where, flush=True)
    done = []
    for check in checks:
        print(SECRETS(as_text(check)), flush=True)
        done.append(check)
    failed = [check.name for check in done if check.outcome == "FAILED"]
    print(f"A sink cannot use this store: {', '.join(failed)}." if failed else "A sink can use this store.")
    return done


def as_text(check: Check) -> str:
    """The check as one line, followed by the lines of its message."""
    lines = [f"{check.name:<20}{check.outcome}{f' ({check.reason})' if check.reason else ''}"]
    return "\n".join([*lines, *(f"    {line}" for line in check.message.splitlines())])


def _sink(args: argparse.Namespace) -> Sink:
    """The sink of the manifest, or a sink with the bucket of the arguments. Raises InvalidSpec."""
    if args.manifest is not None:
        unused = [_flag(name) for name in ("bucket", *_OF_BUCKET) if getattr(args, name)]
        if unused:
            raise InvalidSpec([f"{', '.join(unused)}: not allowed with SINK.yaml, which names the bucket"])
        return read_sink(args.manifest)
    if args.bucket is None:
        raise InvalidSpec(["no bucket: specify SINK.yaml or --bucket NAME"])
    return _of_bucket(args)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _of_bucket(args: argparse.Namespace) -> Sink:
    from sink_job.api.parser import parse_sink

    s3: dict[str, Any] = {"bucket": args.bucket, "pathStyle": args.path_style, "insecure": True}
    optional: Mapping[str, Any] = {"endpoint": args.endpoint, "region": args.region, "topicsDir": args.topics_dir}
    s3 |= {name: value for name, value in optional.items() if value is not None}
    if args.credentials is not None:
        if not args.credentials.is_dir():
            raise SecretNotFound(f"--credentials {args.credentials} is not a directory")
        s3["credentials"] = {"secret": _KEYS}
        args.secrets.append((_KEYS, args.credentials))
    if args.ca_file is not None:
        if not args.ca_file.is_file():
            raise SecretNotFound(f"--ca-file {args.ca_file} is not a file")
        s3["caSecret"] = {"secret": _CA, "key": args.ca_file.name}
        args.secrets.append((_CA, args.ca_file.parent))
    spec = {
        "kafka": {"bootstrapServers": "localhost:9092", "topics": [_NAME]},
        "rotation": {"flushSize": 1},
        "s3": s3,
    }
    metadata = {"name": _NAME}
    return parse_sink({"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": metadata, "spec": spec})
