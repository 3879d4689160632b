"""`s3sink ddl`: prints the statement that creates a table over a sink's objects. Read-only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import InvalidSpec
from sink_job.cli.common import add_config_maps, add_sink, read_sink, registry_settings, secret_dirs, wait, with_schema

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.connect.schema import Schema

DIALECTS = ("athena", "glue", "hive", "trino", "spark", "duckdb", "clickhouse")
NOT_EXPRESSED = 8

DESCRIPTION = """\
Prints the statement that creates a table over what SINK.yaml writes, one for
each topic, for a query engine. Nothing is created and no engine is called.

Columns are those of the records' schema: of format.schema; or of the newest
object in the ledger, which the command reads from the bucket; before the first
object, of the newest version in the registry; or with
--records of values in a file. JSON without a schema is one column of text. The elements of
the path are columns, too; with athena, glue and trino as a partition projection,
so that no partition has to be added.
"""

EXIT_CODES = """\
exit codes:
   0  the table has all columns
   8  something cannot be expressed: a comment in the output, NOT EXPRESSED, says
      what
   2  invalid manifest or command line, such as an unknown topic
   7  configuration error: no schema is known, or a delimiter of directories that
      query engines do not have
   1, 75  as for s3sink run: unexpected error, transient error
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "ddl",
        help="print the statement that creates a table over the objects",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    add_config_maps(parser)
    parser.add_argument("--dialect", required=True, choices=DIALECTS, help="the query engine")
    parser.add_argument("--topic", metavar="TOPIC", help="this topic only; required with topicsPattern")
    parser.add_argument(
        "--records",
        metavar="FILE",
        help="file with values of the topic, one JSON object in a line; - reads standard input",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the statements; returns 8 if one does not express all of its table."""
    if args.manifest == args.records == "-":
        raise InvalidSpec(["standard input cannot be both SINK.yaml and the records: use a file for one of them"])
    sink = with_schema(args, read_sink(args.manifest))
    secrets = secret_dirs(args, sink)

    from sink_job.ddl.sink_tables import chosen_topics, sink_tables
    from sink_job.ddl.statements import Dialect, statement_of

    topics = chosen_topics(sink, args.topic)
    schema_of = _schema_of(sink, secrets, args.records)
    printed = [statement_of(table, Dialect(args.dialect)) for table in sink_tables(sink, topics, schema_of)]
    print("\n".join(text for text, _ in printed), end="")
    return 0 if all(is_whole for _, is_whole in printed) else NOT_EXPRESSED


def _schema_of(sink: Sink, secrets: Mapping[str, Path], records: str | None) -> Callable[[str], Schema | None]:
    from sink_job.api.enums import OutputFormat
    from sink_job.ddl.schema_source import (
        LedgerSchemaReader,
        manifest_schema,
        transformed_by,
        with_envelope,
    )

    settings, change = sink.spec.format, transformed_by(sink)
    has_nulls = sink.spec.errors.null_values() is not None
    envelope = partial(with_envelope, settings=settings, has_nulls=has_nulls)
    if records is not None:
        return _of_sample(sink, list(_lines(records)), is_transformed=change is not None)
    schema = manifest_schema(settings, is_transformed=change is not None)
    if schema is not None and change is not None:
        return cache(lambda topic: envelope(change(schema, topic)))
    if schema is not None:
        known = envelope(schema)
        return lambda topic: known
    if settings.output is OutputFormat.BYTES:
        return lambda topic: None
    if not settings.output.has_datums and settings.registry is None:
        unknown = envelope(None)
        return lambda topic: unknown

    from sink_job.s3 import S3Settings, connect

    s3 = connect(S3Settings.of(sink.spec, secrets, reads_only=True))
    s3.check_access()
    ledger = LedgerSchemaReader(sink, s3)
    registry = registry_settings(sink, secrets)
    if registry is None:
        return ledger.schema

    from sink_job.ddl.schema_source import registry_schema
    from sink_job.driver.secret_registry import SECRETS

    return lambda topic: (
        ledger.schema(topic)
        or registry_schema(topic, settings, registry, wait, SECRETS.hide, change, has_nulls=has_nulls)
    )


def _of_sample(sink: Sink, lines: list[bytes], *, is_transformed: bool) -> Callable[[str], Schema | None]:
    """The schema of values. `is_transformed`: `spec.transforms` changes the schemas of values."""
    from sink_job.api.enums import ConverterType, OutputFormat
    from sink_job.ddl.schema_source import sampled_schema, transformed, with_envelope

    settings, specs = sink.spec.format, sink.spec.transforms
    if is_transformed:
        raise InvalidSpec(["--records cannot be used: the columns are those of the values' schema and spec.transforms"])
    if settings.output is not OutputFormat.JSON or settings.registry is not None:
        raise InvalidSpec(["--records is for the output Json without a registry: other objects have a schema"])
    if settings.converter is ConverterType.TEXT:
        raise InvalidSpec(
            ["--records cannot be used: with the converter Text each value is one text, not an object with fields"]
        )
    envelope = partial(with_envelope, settings=settings, has_nulls=sink.spec.errors.null_values() is not None)
    if specs:
        return cache(lambda topic: envelope(sampled_schema(transformed(lines, specs, topic), settings)))
    sampled = envelope(sampled_schema(lines, settings))
    return lambda topic: sampled


def _lines(name: str) -> list[bytes]:
    try:
        return (sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()).splitlines()
    except OSError as error:
        raise InvalidSpec([f"--records: {name} cannot be read: {error.strerror}"]) from None
