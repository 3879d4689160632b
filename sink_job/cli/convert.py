"""`s3sink convert`: from the configuration of a Kafka Connect S3 sink to an S3Sink manifest."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sink_job.api.errors import InvalidConnector, InvalidSpec
from sink_job.driver.secret_registry import SECRETS

if TYPE_CHECKING:
    from sink_job.migrate.findings import Configuration, Conversion

_DESCRIPTION: Final = """\
Converts the configuration of a Kafka Connect S3 sink
(io.confluent.connect.s3.S3SinkConnector) to an S3Sink manifest. Each line
names the key that it came from.

INPUT is a file (- reads standard input), whose form is recognized by its
content, or the URL of a running worker:

  JSON of POST /connectors, GET /connectors/NAME, PUT .../config; .properties
  Strimzi's KafkaConnector, Confluent for Kubernetes' Connector (YAML or JSON)
  the output of aws kafkaconnect describe-connector
  http(s)://HOST:8083/connectors/NAME, or /connectors for all S3 sinks

Secrets are never printed: the manifest names Secrets, and has the commands
that create them. The command needs no Kafka, S3 or Spark.
"""

_EXIT_CODES: Final = """\
exit codes:
   0  the S3Sink writes the same objects under the same keys
   2  INPUT is not the configuration of a connector, or invalid command line
   7  the worker does not give the configuration (login, certificate, name)
   8  some settings mean something else or are left out; each is listed
   9  the connector cannot be converted; each reason is listed
  75  transient error, safe to retry: the worker did not respond in time
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "convert",
        help="convert the configuration of a Kafka Connect S3 sink",
        description=_DESCRIPTION,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", metavar="INPUT", help="file, -, or URL of a connector")
    parser.add_argument(
        "--worker",
        metavar="FILE",
        help="settings that the connector leaves to its worker: the worker's properties, or Strimzi's KafkaConnect",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the S3Sink; default: that of the connector")
    parser.add_argument(
        "--group", metavar="GROUP", help="consumer group of the connector; default: connect-<connector's name>"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="write one file for each S3Sink; default: standard output"
    )


def run(args: argparse.Namespace) -> int:
    """Prints or writes the manifests. Returns 0, 8 or 9. Raises InvalidConnector, InvalidSpec and the errors of a
    running worker."""
    from sink_job.migrate.conversion import convert

    remark, worker = _worker(args.worker)
    found = _configurations(args.input)
    if len(found) > 1 and (args.name or args.group):
        raise InvalidSpec([f"--name and --group are for one connector, and the input has {len(found)}"])
    if args.name is None and any(each.name is None for each in found):
        raise InvalidConnector("the input has no name of the connector: use --name NAME")
    _check_name(args.name)
    try:
        conversions = [convert(each, worker, name=args.name, group=args.group) for each in found]
    except Exception:  # a defect of the conversion: its message may quote a value
        for settings in (worker, *(each.settings for each in found)):
            SECRETS.hide(settings.values())
        raise
    for name, count in Counter(each.sink for each in conversions).items():
        if count > 1:
            raise InvalidSpec([f"{count} connectors become an S3Sink with the name {name}: convert each with --name"])
    _write(conversions, args.output)
    if remark:
        print(f"s3sink: {remark}", file=sys.stderr)
    return max(each.exit_code for each in conversions)


def _check_name(name: str | None) -> None:
    from sink_job.api.field_types import check_dns_label

    if name is not None:
        try:
            check_dns_label(name)
        except ValueError as error:
            raise InvalidSpec([f"--name {name} {error}"]) from None


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _configurations(source: str) -> list[Configuration]:
    if _is_url(source):
        from sink_job.migrate.inputs.worker_rest import read_running

        return read_running(source)
    from sink_job.migrate.inputs.documents import read_configurations

    return read_configurations(_text(source))


def _worker(source: str | None) -> tuple[str, Mapping[str, str]]:
    """A remark on the worker, and its settings."""
    if source is None:
        return "", {}
    if _is_url(source):
        from sink_job.migrate.inputs.worker_rest import check_worker

        note = "A worker does not publish its converters and consumer settings: give its properties with --worker FILE"
        return f"{check_worker(source)} {note}", {}
    from sink_job.migrate.inputs.worker import read_worker

    return "", read_worker(_text(source))


def _text(source: str) -> str:
    from sink_job.migrate.inputs.documents import MAX_LENGTH

    try:
        content = sys.stdin.buffer.read(MAX_LENGTH + 1) if source == "-" else Path(source).read_bytes()
        if len(content) > MAX_LENGTH:
            raise InvalidConnector(f"{source} is larger than {MAX_LENGTH >> 20} MiB")
        return content.decode("utf-8")
    except OSError as error:
        raise InvalidConnector(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidConnector(f"{source} is not UTF-8 text") from None


def _write(conversions: list[Conversion], directory: Path | None) -> None:
    made = [each for each in conversions if each.lines]
    if directory is None:
        print("---\n".join(each.manifest for each in made), end="")
    else:
        _write_files(made, directory)
    for each in conversions:
        _report(each)


def _write_files(conversions: list[Conversion], directory: Path) -> None:
    existing = [file for each in conversions if (file := directory / f"{each.sink}.yaml").exists()]
    if existing:
        raise InvalidSpec([f"{file} exists: remove it, or use another directory" for file in existing])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for each in conversions:
            file = directory / f"{each.sink}.yaml"
            file.write_text(each.manifest, encoding="utf-8")
            print(file)
    except OSError as error:
        raise InvalidSpec([f"{directory} cannot be written: {error.strerror}"]) from None


def _report(conversion: Conversion) -> None:
    """The findings that change the exit code, to standard error."""
    from sink_job.api.field_errors import in_a_line
    from sink_job.migrate.findings import Severity

    what = {8: "some settings mean something else here", 9: "cannot be converted"}.get(conversion.exit_code)
    if what is None:
        return
    print(f"s3sink: {in_a_line(conversion.connector)}: {what}", file=sys.stderr)
    for finding in conversion.findings:
        if finding.severity in (Severity.DIFFERENT, Severity.IMPOSSIBLE):
            print(f"  {finding}", file=sys.stderr)
