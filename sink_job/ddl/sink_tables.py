"""The tables of a sink: one for each topic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import ConfigurationError, InvalidSpec
from sink_job.api.sections.format_section import BytesSpec
from sink_job.api.spec import ObjectSettings, Sink, ledger_folder
from sink_job.avro.from_connect import avro_schema
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema
from sink_job.ddl.columns import columns_of
from sink_job.ddl.path_columns import path_columns
from sink_job.ddl.table import SinkTable
from sink_job.partitioning.object_keys import extension, topic_prefix

_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_]")

SchemaOf = Callable[[str], Schema | None]
"""The schema of the records of a topic; None if it is not known."""


def chosen_topics(sink: Sink, topic: str | None) -> Sequence[str]:
    """The topics of the manifest, or `topic`. Raises InvalidSpec for an unknown one, and for a pattern without one."""
    kafka = sink.spec.kafka
    if topic is None:
        if kafka.topics is None:
            raise InvalidSpec(["--topic is missing: spec.kafka has topicsPattern"])
        return kafka.topics
    if kafka.topics is not None and topic not in kafka.topics:
        raise InvalidSpec([f"--topic {topic} is not in spec.kafka.topics: {', '.join(kafka.topics[:10])}"])
    return [topic]


def table_names(topics: Sequence[str]) -> dict[str, str]:
    """A name of each topic's table: in lower case, with `_` for characters that not all engines allow."""
    found: dict[str, str] = {}
    for topic in topics:
        plain = _NOT_PLAIN.sub("_", topic.lower())
        name, number = plain, 2
        while name in found.values():
            name, number = f"{plain}_{number}", number + 1
        found[topic] = name
    return found


def sink_tables(sink: Sink, topics: Sequence[str], schema_of: SchemaOf) -> Iterator[SinkTable]:
    """The tables. Raises ConfigurationError for keys that are in no directory of an engine."""
    settings = sink.object_settings()
    if settings.s3.directory_delimiter != "/":
        raise ConfigurationError(
            f"spec.s3.directoryDelimiter is {settings.s3.directory_delimiter!r}: query engines know the delimiter / "
            "only. No table can have these objects"
        )
    _check_directories(sink, settings, topics)
    for topic, name in table_names(topics).items():
        yield _table(sink, settings, topic, name, schema_of(topic))


def _check_directories(sink: Sink, settings: ObjectSettings, topics: Sequence[str]) -> None:
    """With `s3.prefixes` and `topicInPath: false` a directory may have more than the objects of one topic.

    A table over it would read all of it. Raises ConfigurationError.
    """
    others = {*topics, *(sink.spec.kafka.topics or ())}
    for topic in topics:
        prefix = topic_prefix(settings, topic)
        inside = [other for other in sorted(others - {topic}) if topic_prefix(settings, other).startswith(prefix)]
        found = [f"those of topic {inside[0]}"] if inside else []
        if sink.spec.kafka.topics is None and not settings.s3.topic_in_path:
            found.append("those of other topics that spec.kafka.topicsPattern may match")
        if ledger_folder(settings.s3.topics_dir, sink.sink_id).startswith(prefix):
            found.append("the ledger")
        if found:
            raise ConfigurationError(
                f"topic {topic}: below {prefix or 'the root of the bucket'} are not only its objects, but also "
                f"{' and '.join(found)}: a table would read them, too. Give the topic a directory of its own in "
                "spec.s3.prefixes"
            )


def _table(sink: Sink, settings: ObjectSettings, topic: str, name: str, schema: Schema | None) -> SinkTable:
    output, format_settings = sink.spec.format.output, sink.spec.format
    datums = DatumSettings.of(format_settings)
    has_registry = output is OutputFormat.JSON and format_settings.registry is not None
    if schema is None and (datums is not None or has_registry):
        raise ConfigurationError(
            f"topic {topic}: the schema of its records is not known: neither the ledger nor a registry has "
            "one. Start the sink, or set spec.format.schema"
        )
    columns = None if schema is None or output is OutputFormat.BYTES else columns_of(schema, format_settings)
    gaps = []
    if columns is None and datums is not None:
        gaps.append("records are no structs: they have no columns")
    notes = []
    if output is OutputFormat.JSON and schema is None:
        notes.append(
            "The values have no schema: each record is one text. With --records FILE columns are inferred from values"
        )
    if settings.schema_compatibility.value != "None" and datums is not None:
        notes.append("The columns are those of the newest object. Older objects may lack some of them")
    return SinkTable(
        name=name,
        topic=topic,
        bucket=sink.spec.s3.bucket,
        prefix=topic_prefix(settings, topic),
        extension=extension(settings),
        output=output,
        codec=format_settings.compression.codec,
        columns=columns,
        paths=path_columns(settings),
        avro=avro_schema(schema, datums)
        if schema is not None and datums is not None and not datums.is_parquet
        else None,
        separator=(format_settings.bytes or BytesSpec()).separator if output is OutputFormat.BYTES else "\n",
        endpoint=sink.spec.s3.endpoint,
        region=sink.spec.s3.region,
        tombstones=settings.tombstone_path,
        notes=tuple(notes),
        gaps=tuple(gaps),
    )
