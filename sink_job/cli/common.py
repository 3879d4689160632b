"""Common parts of the commands: reading the manifest and its secrets, error messages and exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import ConfigMapNotFound, InvalidSpec, SecretNotFound, SinkError
from sink_job.api.owner import OwnerIdentity
from sink_job.driver.secret_registry import SECRETS, secrets_of

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.ledger.session import LedgerAccess
    from sink_job.registry.base import SchemaRegistry
    from sink_job.registry.settings import RegistrySettings

SECRETS_DIR = "S3SINK_SECRETS_DIR"
CONFIG_MAPS_DIR = "S3SINK_CONFIG_MAPS_DIR"
OUTPUT_HELP = "output format (default: table)"
LOG_HELP = "log format (default: text)"

EXIT_CODES = """\
exit codes:
   0  success; for run also after SIGTERM or Ctrl-C
   1  unexpected error (use --debug for a stack trace)
   2  invalid manifest or command line
   3  fenced: another driver has claimed this sink
   4  data error: a record cannot be written, and errors.tolerance is None
   5  data loss: Kafka has deleted records that are not in S3 yet;
      compare: the sink lacks records
   6  object conflict: an object with different content already exists;
      compare: keys or records differ
   7  configuration error: for example bucket, topic or secret not found,
      access denied, ownership conflict, unreadable ledger file
   8  convert: settings mean something else, or are left out;
      ddl: the table lacks something
   9  convert: the connector cannot be converted
  11  too many executors failed (in a cluster)
  75  transient error, safe to retry: Kafka, S3 or the network did not
      respond in time
 130  interrupted by Ctrl-C (commands other than run)
"""


def add_sink(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Adds the arguments for the manifest and its secrets. Without `required`, the manifest can be None."""
    nargs = None if required else "?"
    parser.add_argument(
        "manifest", metavar="SINK.yaml", nargs=nargs, help="manifest of the S3Sink; - reads standard input"
    )
    add_secrets(parser)


def add_secrets(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the secrets of a manifest."""
    parser.add_argument(
        "--secret",
        metavar="NAME=DIR",
        action="append",
        default=[],
        type=_secret,
        dest="secrets",
        help="directory of a secret, with one file for each key, like a mounted Kubernetes Secret; repeatable. "
        f"${SECRETS_DIR} is a directory with one subdirectory for each secret",
    )


def add_config_maps(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for ConfigMaps."""
    parser.add_argument(
        "--config-map",
        metavar="NAME=DIR",
        action="append",
        default=[],
        type=_secret,
        dest="config_maps",
        help="directory of a ConfigMap (spec.format.schema), with one file for each key; repeatable. "
        f"${CONFIG_MAPS_DIR} is a directory with one subdirectory for each ConfigMap",
    )


def with_schema(args: argparse.Namespace, sink: Sink, environ: Mapping[str, str] | None = None) -> Sink:
    """The sink with the text of the schema that `spec.format.schema` takes from a ConfigMap. `--config-map` takes
    precedence over `$S3SINK_CONFIG_MAPS_DIR`.

    Raises ConfigMapNotFound.
    """
    schema, environ = sink.spec.format.bare_value_schema, os.environ if environ is None else environ
    if schema is None or schema.config_map is None:
        return sink
    found: dict[str, Path] = dict(args.config_maps)
    if root := environ.get(CONFIG_MAPS_DIR):
        found = {schema.config_map: Path(root) / schema.config_map} | found
    here = f"spec.format.schema: the key {schema.key} of the ConfigMap {schema.config_map}"
    if schema.config_map not in found:
        raise ConfigMapNotFound(f"{here} was not found: use --config-map {schema.config_map}=DIRECTORY")
    file = found[schema.config_map] / str(schema.key)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigMapNotFound(f"{here} cannot be read: {file}: {what}") from None
    return sink.with_schema_text(text)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the format of results and logs."""
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help=OUTPUT_HELP)
    parser.add_argument("--log", choices=("text", "json"), default="text", help=LOG_HELP)


def add_removed_before(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for objects that a lifecycle rule has removed, in ms."""
    parser.add_argument(
        "--removed-before",
        metavar="TIME",
        type=parse_time,
        help="missing objects that were written before this time were removed on purpose, such as "
        "2025-11-03T10:00:00Z; default: as spec.s3.expireAfter says",
    )


_MIN_MILLISECONDS = 12
"""Minimum number of digits of a time in ms: those of 1973. Fewer may be a date without its marks."""


def parse_time(text: str) -> int:
    """The argument for a time or a date, in ms since the epoch. Raises ArgumentTypeError."""
    from sink_job.api.units.timestamps import Timestamp, parse_timestamp

    try:
        if text.isascii() and text.isdigit() and len(text) >= _MIN_MILLISECONDS:
            return Timestamp().checked(int(text))
        return parse_timestamp(text if "T" in text.upper() else f"{text}T00:00:00Z")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from None


def add_take_over_from(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for a previous owner, as `OwnerIdentity`."""
    parser.add_argument(
        "--take-over-from",
        metavar="OWNER",
        type=_owner,
        help="take over what this sink owned, after fencing it: cluster/namespace/name/sinkId, as in the error "
        "OwnershipConflict",
    )


def _owner(text: str) -> OwnerIdentity:
    try:
        return OwnerIdentity.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _secret(text: str) -> tuple[str, Path]:
    name, equals, directory = text.partition("=")
    if not (name and equals and directory):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=DIR")
    return name, Path(directory)


def read_sink(manifest: str) -> Sink:
    """The sink in the file `manifest` (`-`: standard input). Raises InvalidSpec, also for an unreadable file."""
    from sink_job.api.parser import load_sink

    try:
        text = sys.stdin.read() if manifest == "-" else Path(manifest).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidSpec([f"{manifest} cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise InvalidSpec([f"{manifest} is not UTF-8 text"]) from None
    return load_sink(text)


def secret_dirs(args: argparse.Namespace, sink: Sink, environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """The directories of secrets by name. `--secret` takes precedence over `$S3SINK_SECRETS_DIR`.

    Registers the values that the sink uses for redaction in all output. Raises SecretNotFound for a missing directory.
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


def registry_settings(sink: Sink, secrets: Mapping[str, Path]) -> RegistrySettings | None:
    """The settings of `spec.format.registry` with the proxy of `spec.s3`; None without a registry. Raises
    SecretNotFound."""
    from sink_job.registry.settings import RegistrySettings
    from sink_job.s3 import S3Settings

    given = sink.spec.format.registry
    if given is None:
        return None
    return RegistrySettings.of(given, secrets, S3Settings.of(sink.spec, secrets, reads_only=True).proxy)


@contextmanager
def schemas_of(sink: Sink, secrets: Mapping[str, Path]) -> Iterator[SchemaRegistry | None]:
    """The schemas of a sink's records for a command (`open_schemas`). Raises SecretNotFound and ConfigurationError."""
    from sink_job.registry.client import open_schemas

    registry = open_schemas(sink.spec.format, registry_settings(sink, secrets), wait, SECRETS.hide)
    try:
        yield registry
    finally:
        if registry is not None:
            registry.close()


def wait(seconds: float) -> bool:
    """A pause of a command, which nothing but a signal ends: returns False."""
    time.sleep(seconds)
    return False


def open_ledger_access(
    sink: Sink, secrets: Mapping[str, Path], *, take_over_from: OwnerIdentity | None = None
) -> LedgerAccess:
    """Connects to the bucket. `take_over_from`: the owner that the sink replaces. Raises the errors of `connect` and
    `check_access`."""
    from sink_job.driver.machine import owner_of
    from sink_job.ledger.first_claim.ledger_place import ledger_root
    from sink_job.ledger.handover import Handover
    from sink_job.ledger.ownership import Owner
    from sink_job.ledger.session import LedgerAccess
    from sink_job.s3 import S3Settings, connect

    names = sink.spec.s3
    s3 = connect(S3Settings.of(sink.spec, secrets))
    s3.check_access()
    root, attempt = ledger_root(s3, names.topics_dir, sink.sink_id), uuid.uuid4().hex
    succession = Handover(
        s3=s3,
        topics_dir=names.topics_dir,
        root=root,
        attempt=attempt,
        clock=_now,
        store_clock=s3.clock_ms,
        predecessor=None if take_over_from is None else Owner(*take_over_from),
    )
    return LedgerAccess(
        s3=s3,
        root=root,
        owner=owner_of(sink, os.environ),
        attempt=attempt,
        clock=_now,
        store_clock=s3.clock_ms,
        succession=succession,
    )


def _now() -> int:
    return time.time_ns() // 1_000_000


def report_failure(error: BaseException, *, debug: bool = False, as_json: bool = False) -> int:
    """Prints the error of a command to standard error. Returns its exit code."""
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
            print("s3sink: unexpected error; use --debug for a stack trace", file=sys.stderr)
    return code


def reason_of(error: BaseException) -> str:
    """The CamelCase reason of an error."""
    return error.reason if isinstance(error, SinkError) else SinkError.reason


def failure_message(error: BaseException) -> str:
    """The message of an error on one line. Several errors of a manifest have one line each."""
    if isinstance(error, InvalidSpec):
        return "".join(f"\n  {each}" for each in error.errors) if len(error.errors) > 1 else str(error)
    text = " ".join(str(error).split())
    return text if isinstance(error, SinkError) else f"{type(error).__name__}: {text}".removesuffix(": ")
