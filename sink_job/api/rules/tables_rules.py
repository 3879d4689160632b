"""Rules for `spec.tables`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.aws_types import EncryptionType
from sink_job.api.enums import (
    CatalogType,
    OnMissing,
    OnTableChange,
    OutputFormat,
    TablePartitioning,
    TimestampExtractor,
)
from sink_job.api.field_errors import FieldError, Path
from sink_job.api.field_types import is_loopback

if TYPE_CHECKING:
    from sink_job.api.sections.tables_section import CatalogSpec, TableSpec
    from sink_job.api.spec import Spec

_TABLES: Final[Path] = ("spec", "tables")
_OUTPUT: Final[Path] = ("spec", "format", "output")
_TOPIC: Final = "{topic}"
_GLUE: Final = (CatalogType.GLUE, CatalogType.GLUE_PARTITIONS)
_HIVE: Final = (CatalogType.HIVE, CatalogType.HIVE_PARTITIONS)
_THRIFT: Final = re.compile(r"thrift://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?")
_DATABASE_NAME: Final = re.compile(r"[a-z0-9_{}]+[.][a-z0-9_{}]+")


def check_tables(spec: Spec) -> Iterator[FieldError]:
    """Tables of Iceberg are over Parquet and Avro objects. Each table is listed once, and has one topic."""
    has_iceberg = any(each.catalog.type.is_iceberg for each in spec.tables)
    if has_iceberg and spec.format.output not in (OutputFormat.PARQUET, OutputFormat.AVRO):
        yield FieldError(_TABLES, f"needs format.output: Parquet or Avro, not {spec.format.output}", (_OUTPUT,))
    if has_iceberg:
        yield from _readers(spec)
    for name, count in Counter(each.name for each in spec.tables).items():
        if count > 1:
            yield FieldError(_TABLES, f"lists the name {name} {count} times: use another name for each catalog")
    for at, table in enumerate(spec.tables):
        is_one = spec.kafka.topics is not None and len(spec.kafka.topics) == 1
        if _TOPIC not in table.name and not is_one:
            topics: Path = ("spec", "kafka", "topics")
            message = f"{table.name} has no {_TOPIC}: each topic of the sink needs a table of its own"
            yield FieldError((*_TABLES, at, "name"), message, (topics, ("spec", "kafka", "topicsPattern")))
        if table.partitioning is TablePartitioning.HIDDEN:
            yield from _hidden(spec, (*_TABLES, at, "partitioning"))
        is_plain = table.catalog.type in (CatalogType.REST, CatalogType.SQL)
        if not is_plain and not _DATABASE_NAME.fullmatch(table.name):
            message = f"is not a name for the type {table.catalog.type}: use database.name in lower case"
            yield FieldError((*_TABLES, at, "name"), message, ((*_TABLES, at, "catalog", "type"),))
        if not table.catalog.type.is_iceberg:
            yield from _of_iceberg(table, (*_TABLES, at))
        elif table.on_missing is OnMissing.SKIP:
            yield from _skipping(table, (*_TABLES, at))
        yield from _catalog(table.catalog, (*_TABLES, at, "catalog"))
        yield from _among_objects(spec, table.catalog, (*_TABLES, at, "catalog", "warehouse"))


def _readers(spec: Spec) -> Iterator[FieldError]:
    """What a registration of tables of Iceberg cannot use, and readers of the table do not have."""
    s3: Path = ("spec", "s3")
    if spec.s3.assume_role is not None:
        message = (
            "cannot be used with spec.s3.assumeRole: its session may use the prefixes of the sink alone, and not the "
            "location of a table"
        )
        yield FieldError(_TABLES, message, ((*s3, "assumeRole"),))
    if spec.s3.encryption is not None and spec.s3.encryption.type is EncryptionType.CUSTOMER:
        message = "cannot be used with spec.s3.encryption.type Customer: no reader of a table has this key"
        yield FieldError(_TABLES, message, ((*s3, "encryption", "type"),))


def _of_iceberg(table: TableSpec, here: Path) -> Iterator[FieldError]:
    """The errors of fields that tables of Hive's kind do not have."""
    for name, is_set in (
        ("partitioning", table.partitioning is not TablePartitioning.PATH),
        ("branch", table.branch != "main"),
        ("onMissing", table.on_missing is not OnMissing.STOP),
        ("onReset", table.on_reset is not OnTableChange.STOP),
        ("onIncompatible", table.on_incompatible is not OnTableChange.STOP),
    ):
        if is_set:
            message = f"has no effect with the type {table.catalog.type}: remove it"
            yield FieldError((*here, name), message, ((*here, "catalog", "type"),))


def _skipping(table: TableSpec, here: Path) -> Iterator[FieldError]:
    """A skipped object may exist again after its table was left: no table takes it then."""
    for name, chosen in (("onReset", table.on_reset), ("onIncompatible", table.on_incompatible)):
        if chosen is OnTableChange.NEW_TABLE:
            message = (
                "NewTable cannot be used with onMissing: Skip: an object that exists again after its table was "
                "continued would be in no table. Use Stop for one of them"
            )
            yield FieldError((*here, name), message, ((*here, "onMissing"),))


def _hidden(spec: Spec, here: Path) -> Iterator[FieldError]:
    """Rows have the time of their path in a column."""
    partitioner = spec.partitioner
    extractor: Path = ("spec", "partitioner", "timestampExtractor")
    if spec.format.output is OutputFormat.AVRO:
        message = "Hidden needs format.output: Parquet: Avro objects have no bounds that prove the time of their rows"
        yield FieldError(here, message, (_OUTPUT,))
    if not partitioner.type.uses_time:
        yield FieldError(here, "Hidden needs a path with a time", (("spec", "partitioner", "type"),))
    elif partitioner.timestamp_extractor is TimestampExtractor.WALLCLOCK:
        yield FieldError(here, "Hidden needs the time of records: their rows have no wall clock", (extractor,))
    elif partitioner.timestamp_extractor is TimestampExtractor.RECORD and not spec.format.envelope:
        message = "Hidden needs format.envelope for the extractor Record: rows have no Kafka timestamp without it"
        yield FieldError(here, message, (extractor, ("spec", "format", "envelope")))


def _catalog(spec: CatalogSpec, here: Path) -> Iterator[FieldError]:
    yield from _of_other_types(spec, here)
    if spec.type in (CatalogType.SQL, CatalogType.GLUE, CatalogType.HIVE):
        yield from _warehouse(spec, here)
    if spec.type.is_glue and spec.region is None:
        text = f"is missing: the type {spec.type} needs it, for example eu-central-1"
        yield FieldError((*here, "region"), text, ((*here, "type"),))
    uri: Path = (*here, "uri")
    if spec.uri is None:
        if not spec.type.is_glue:
            yield FieldError(uri, f"is missing: the type {spec.type} needs it", ((*here, "type"),))
    elif spec.type is CatalogType.SQL:
        if not spec.uri.startswith("sqlite:///") or spec.uri.removeprefix("sqlite:///") in ("", ":memory:"):
            yield FieldError(uri, f"is not for the type {spec.type}: use sqlite:/// and the path of a file")
    elif spec.type in _HIVE:
        if not _THRIFT.fullmatch(spec.uri):
            yield FieldError(uri, f"is not for the type {spec.type}: use thrift://host:9083, with one host")
    elif not spec.uri.startswith(("https://", "http://")):
        yield FieldError(uri, f"is not for the type {spec.type}: use https://host")
    elif spec.uri.startswith("http://") and not spec.insecure and not is_loopback(spec.uri):
        message = "is not encrypted: use https://, or set catalog.insecure: true"
        yield FieldError(uri, message, ((*here, "insecure"),))


def _warehouse(spec: CatalogSpec, here: Path) -> Iterator[FieldError]:
    if spec.warehouse is None:
        if spec.type is not CatalogType.HIVE:  # each database of a metastore has a location
            yield FieldError((*here, "warehouse"), f"is missing: the type {spec.type} needs it", ((*here, "type"),))
    elif not spec.warehouse.startswith(("s3://", "s3a://") if spec.type is CatalogType.HIVE else "s3://"):
        yield FieldError((*here, "warehouse"), "is not in a bucket: use s3://bucket/folder", ((*here, "type"),))


def _among_objects(spec: Spec, catalog: CatalogSpec, here: Path) -> Iterator[FieldError]:
    """The removal of orphan files of a table among the objects would delete objects and the ledger."""
    bucket, _, folder = (catalog.warehouse or "").partition("://")[2].partition("/")
    if bucket == spec.s3.bucket and f"{folder.strip('/')}/".startswith(f"{spec.s3.topics_dir}/".lstrip("/")):
        message = "is inside of spec.s3.topicsDir: use another folder or bucket for tables"
        yield FieldError(here, message, (("spec", "s3", "topicsDir"),))


def _of_other_types(spec: CatalogSpec, here: Path) -> Iterator[FieldError]:
    """The errors of fields that belong to another type of catalog."""
    for name, is_set, types in (
        ("credentials", spec.credentials is not None, (CatalogType.REST, *_GLUE)),
        ("caSecret", spec.ca_secret is not None, (CatalogType.REST, *_GLUE, *_HIVE)),
        (
            "warehouse",
            spec.warehouse is not None,
            (CatalogType.REST, CatalogType.GLUE, CatalogType.HIVE, CatalogType.SQL),
        ),
        ("insecure", spec.insecure, (CatalogType.REST, *_GLUE)),
        ("region", spec.region is not None, _GLUE),
        ("assumeRole", spec.assume_role is not None, _GLUE),
    ):
        if is_set and spec.type not in types:
            message = f"has no effect with the type {spec.type}, only with {' and '.join(types)}: remove it"
            yield FieldError((*here, name), message, ((*here, "type"),))
