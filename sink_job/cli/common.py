"""What the commands share: the manifest, the secrets beside it, and how a failure is told and becomes an exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import InvalidSpec, SecretNotFound, SinkError
from sink_job.driver.secret_registry import SECRETS, secrets_of

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.ledger.session import LedgerAccess

SECRETS_DIR = "S3SINK_SECRETS_DIR"

EXIT_CODES = """\
exit codes:
   0  done; also when it was ended by SIGTERM or Ctrl-C
   1  another error (--debug shows where)
   2  the manifest or the command line is wrong
   3  fenced: another driver has taken over this sink
   4  data error: a record cannot be written, and errors.tolerance is None
   5  data loss: Kafka no longer holds records that are not in S3 yet
   6  object conflict: another object stands where one has to be written
   7  configuration or credentials: no bucket, no access, no topic, a secret
      that is not there, another owner, a damaged file of the ledger
  11  too many executors failed (in a cluster)
  75  worth trying again: Kafka, S3 or the network did not answer in time
"""


def add_sink(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The arguments that say which sink: its manifest (None when it is not required and not given), and where its
    secrets are."""
    nargs = None if required else "?"
    parser.add_argument("manifest", metavar="SINK.yaml", nargs=nargs, help="the S3Sink; - reads standard input")
    parser.add_argument(
        "--secret",
        metavar="NAME=DIR",
        action="append",
        default=[],
        type=_secret,
        dest="secrets",
        help="a secret of the manifest and the directory it is in, one file a key, as Kubernetes mounts it; may be "
        f"given again. ${SECRETS_DIR} names a directory of such directories",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """The arguments that say how results and logs look."""
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--log", choices=("text", "json"), default="text", help="how log lines look (default: text)")


def _secret(text: str) -> tuple[str, Path]:
    name, equals, directory = text.partition("=")
    if not (name and equals and directory):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=DIR")
    return name, Path(directory)


def read_sink(manifest: str) -> Sink:
    """The sink in the file `manifest` (`-`: standard input). Raises InvalidSpec, also for a file that cannot be
    read."""
    from sink_job.api.spec import load_sink

    try:
        text = sys.stdin.read() if manifest == "-" else Path(manifest).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidSpec([f"{manifest} cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise InvalidSpec([f"{manifest} is not text (UTF-8)"]) from None
    return load_sink(text)


def secret_dirs(args: argparse.Namespace, sink: Sink, environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Where each secret is, by its name: `--secret` before `$S3SINK_SECRETS_DIR`.

    What the sink takes from them is hidden from all output from here on. Raises SecretNotFound for a directory that is
    not there.
    """
    environ = os.environ if environ is None else environ
    found: dict[str, Path] = {}
    if root := environ.get(SECRETS_DIR):
        if not Path(root).is_dir():
            raise SecretNotFound(f"${SECRETS_DIR}: {root} is not a directory")
        found = {path.name: path for path in sorted(Path(root).iterdir()) if path.is_dir()}
    for name, directory in args.secrets:
        if not directory.is_dir():
            raise SecretNotFound(f"--secret {name}: {directory} is not a directory")
        found[name] = directory
    SECRETS.hide(secrets_of(sink, found, environ))
    return found


def open_ledger_access(sink: Sink, secrets: Mapping[str, Path]) -> LedgerAccess:
    """Connects to the bucket. Raises what that raises."""
    from sink_job.driver.run import owner_of
    from sink_job.ledger.ownership import ledger_root
    from sink_job.ledger.session import LedgerAccess
    from sink_job.s3 import S3Settings, connect

    names = sink.spec.s3
    s3 = connect(S3Settings.of(names, secrets))
    s3.check_access()
    return LedgerAccess(
        s3=s3,
        root=ledger_root(names.topics_dir, sink.sink_id),
        owner=owner_of(sink, os.environ),
        attempt=uuid.uuid4().hex,
        clock=lambda: time.time_ns() // 1_000_000,
        store_clock=s3.clock_ms,
    )


def report_failure(error: BaseException, *, debug: bool = False, as_json: bool = False) -> int:
    """Tells a person, on standard error, why a command failed. Returns its exit code."""
    code = error.exit_code if isinstance(error, SinkError) else 1
    if debug:
        print(SECRETS("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    if as_json:
        line = {
            "level": "ERROR",
            "reason": reason_of(error),
            "message": SECRETS(failure_message(error)),
            "exitCode": code,
        }
        print(json.dumps(line, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"s3sink: {reason_of(error)}: {SECRETS(failure_message(error))}", file=sys.stderr)
        if not isinstance(error, SinkError) and not debug:
            print("s3sink: this was not foreseen; --debug shows where it happened", file=sys.stderr)
    return code


def reason_of(error: BaseException) -> str:
    """The CamelCase name of a failure."""
    return error.reason if isinstance(error, SinkError) else SinkError.reason


def failure_message(error: BaseException) -> str:
    """What a failure says: all mistakes of a manifest a line each, else one line."""
    if isinstance(error, InvalidSpec):
        return "".join(f"\n  {mistake}" for mistake in error.mistakes) if len(error.mistakes) > 1 else str(error)
    text = " ".join(str(error).split())
    return text if isinstance(error, SinkError) else f"{type(error).__name__}: {text}".removesuffix(": ")
