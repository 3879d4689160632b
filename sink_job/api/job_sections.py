"""The sections of the manifest for the job: source, format, partitioning, rotation and destination."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import (
    CompressionCodec,
    ConverterType,
    IsolationLevel,
    OnNullValue,
    OutputFormat,
    PartitionerType,
    RotationScope,
    SchemaNamePosition,
    StartingOffsets,
    TimestampExtractor,
    Tolerance,
)
from sink_job.api.field_types import (
    BootstrapServers,
    Bucket,
    DataKey,
    Delimiter,
    Endpoint,
    Extension,
    FieldPath,
    FileDelimiter,
    GroupId,
    Locale,
    ObjectName,
    PathFormat,
    PropertyName,
    Region,
    Timezone,
    TopicName,
    TopicsDir,
    TopicsPattern,
    is_loopback,
)
from sink_job.api.quantities import DAY, GI, MI, SECOND, Duration, Size
from sink_job.api.reserved_properties import redacted

_SAFE_INTEGER = 2**53 - 1


class SecretRef(SpecModel):
    """A Secret by name: a Kubernetes Secret, or a directory given by `--secret name=dir` without Kubernetes."""

    secret: Annotated[ObjectName, description(example="s3-keys")]
    """Name of the Secret."""


class SecretKey(SecretRef):
    """One value in a Secret."""

    key: Annotated[DataKey, description(example="ca.crt")]
    """Key in the Secret."""


class PropertySecret(SecretKey):
    """A Kafka client property whose value is in a Secret, not in the manifest."""

    name: Annotated[PropertyName, description(example="sasl.jaas.config")]
    """Name of the Kafka client property."""


class KafkaSpec(SpecModel):
    """Brokers of Kafka and topics to copy."""

    bootstrap_servers: Annotated[BootstrapServers, description(example="kafka.example.com:9092")]
    """Bootstrap brokers: host:port, separated by commas."""
    topics: Annotated[
        list[TopicName] | None, description(key="topics", example=["flights"], min_length=1, max_length=1000)
    ] = None
    """Topics to copy. Set either topics or topicsPattern."""
    topics_pattern: Annotated[TopicsPattern | None, description(key="topics.regex", example="flights-.*")] = None
    """Regular expression for the whole names of topics to copy, including topics created later."""
    group_id: Annotated[GroupId | None, description(example="s3sink-flights")] = None
    """Consumer group whose committed offsets show the progress. Default: s3sink-<sink id>."""
    starting_offsets: Annotated[StartingOffsets, description(key="consumer.override.auto.offset.reset")] = (
        StartingOffsets.EARLIEST
    )
    """Start position of a sink without a ledger and without committed offsets."""
    isolation_level: Annotated[IsolationLevel, description(key="consumer.override.isolation.level")] = (
        IsolationLevel.READ_COMMITTED
    )
    """Whether uncommitted records of transactions are copied."""
    properties: Annotated[dict[str, str], description(example={"security.protocol": "SASL_SSL"}, max_length=200)] = (
        Field(default_factory=dict)
    )
    """Further Kafka client properties, without a prefix. Properties that Spark or the sink sets are rejected."""
    property_secrets: Annotated[
        list[PropertySecret],
        description(example=[{"name": "sasl.jaas.config", "secret": "kafka-login", "key": "jaas"}], max_length=50),
    ] = Field(default_factory=list)
    """Kafka client properties whose values are in Secrets."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(value) if name == "properties" else value


class FormatSpec(SpecModel):
    """Conversion of records to objects."""

    converter: Annotated[ConverterType, description(key="value.converter")] = ConverterType.JSON
    """Converter of record values."""
    key_converter: Annotated[ConverterType | None, description(key="key.converter")] = None
    """Converter of record keys. Without it keys are not read."""
    output: Annotated[OutputFormat, description(key="format.class")] = OutputFormat.JSON
    """Format of objects: JSON lines, or raw bytes with a separator."""
    compression: Annotated[CompressionCodec, description(key="s3.compression.type, avro.codec, parquet.codec")] = (
        CompressionCodec.NONE
    )
    """Compression of objects."""
    gzip_level: Annotated[StrictInt, description(key="s3.compression.level", ge=0, le=3)] = 2
    """Gzip level, from 0 (fastest) to 3 (smallest), as in ISA-L."""
    bytes_separator: Annotated[str, description(key="format.bytearray.separator", max_length=64)] = "\n"
    """Separator after every record, with output Bytes. Default: a newline. May be empty."""
    bytes_extension: Annotated[Extension, description(key="format.bytearray.extension")] = ".bin"
    """File extension of objects, with output Bytes."""
    envelope: StrictBool = False
    """Write key, headers, timestamp, topic, partition and offset together with the value."""


class PartitionerSpec(SpecModel):
    """Path of a record below the prefix of its topic."""

    type: Annotated[PartitionerType, description(key="partitioner.class")] = PartitionerType.DEFAULT
    """Source of the path: the Kafka partition, fields of the value, the time, or fields and time."""
    fields: Annotated[
        list[FieldPath] | None,
        description(key="partition.field.name", example=["carrier", "origin.country"], min_length=1, max_length=32),
    ] = None
    """Fields of the value for the types Field and FieldAndTime; nested fields with dots."""
    duration: Annotated[
        Annotated[int, Duration(minimum=1)] | None, description(key="partition.duration.ms", example="1h")
    ] = None
    """Duration of one path, for the types Time and FieldAndTime. Hourly is 1h, Daily is 1d."""
    path_format: Annotated[
        PathFormat | None, description(key="path.format", example="'year'=YYYY/'month'=MM/'day'=dd")
    ] = None
    """Joda/Java date pattern of the path, for Time and FieldAndTime. Quote literals with single quotes."""
    timezone: Annotated[Timezone | None, description(key="timezone", example="Europe/Berlin")] = None
    """Time zone of paths and of rotation.scheduleInterval: an IANA name or an offset such as +02:00."""
    locale: Annotated[Locale, description(key="locale")] = "en"
    """Locale of the names of months and days in paths."""
    timestamp_extractor: Annotated[TimestampExtractor, description(key="timestamp.extractor")] = (
        TimestampExtractor.WALLCLOCK
    )
    """Time of a record: the wall clock of its round, its Kafka timestamp, or a field of its value."""
    timestamp_field: Annotated[FieldPath, description(key="timestamp.field")] = "timestamp"
    """Field of the value with the time, for RecordField; a nested field with dots."""
    schema_name: Annotated[SchemaNamePosition, description(key="s3.schema.partition.affix.type")] = (
        SchemaNamePosition.NONE
    )
    """Put an element schema_name=<name> before or after the path."""


class RotationSpec(SpecModel):
    """When objects are closed and become visible. Requires flushSize, interval, scheduleInterval or maxBytes."""

    flush_size: Annotated[StrictInt | None, description(key="flush.size", example=100000, ge=1, le=_SAFE_INTEGER)] = (
        None
    )
    """Close when the open objects of a topic-partition have this many records in total."""
    interval: Annotated[
        Annotated[int, Duration(minimum=1)] | None, description(key="rotate.interval.ms", example="10m")
    ] = None
    """Close when the time of a record is this much after that of the first one. Requires a time partitioner."""
    schedule_interval: Annotated[
        Annotated[int, Duration(minimum=1, maximum=DAY)] | None,
        description(key="rotate.schedule.interval.ms", example="1h"),
    ] = None
    """Close at multiples of this interval since midnight in partitioner.timezone, by the wall clock."""
    on_path_change: Annotated[StrictBool, description(key="rotate.file.on.partition.change")] = True
    """With interval: close also when the path changes from one record to the next."""
    max_open_objects: Annotated[
        StrictInt | None, description(key="partitioner.max.open.files", ge=1, le=_SAFE_INTEGER)
    ] = None
    """Maximum number of open objects of a topic-partition; one more closes them."""
    max_bytes: Annotated[Annotated[int, Size(minimum=1)] | None, description(example="1Gi")] = None
    """Close at the first record with which an object reaches this size: encoded, before compression."""
    max_open_time: Annotated[Annotated[int, Duration(minimum=1)] | None, description(example="15m")] = None
    """Close an object after this time by the wall clock, even without further records."""
    scope: RotationScope = RotationScope.PARTITION
    """Whether flushSize, maxBytes and interval apply to a topic-partition or to each object."""


class KeySettings(SpecModel):
    """The settings that determine keys and parts."""

    topics_dir: Annotated[TopicsDir, description(key="topics.dir")] = "topics"
    """First element of every key; may be empty. Immutable, since it contains the ledger."""
    directory_delimiter: Annotated[Delimiter, description(key="directory.delim")] = "/"
    """Delimiter between the directories of a key. Open objects keep the previous one after an edit."""
    file_delimiter: Annotated[FileDelimiter, description(key="file.delim")] = "+"
    """Delimiter between topic, partition and offset in the name of an object."""
    offset_pad_width: Annotated[StrictInt, description(key="filename.offset.zero.pad.width", ge=0, le=64)] = 10
    """Minimum number of digits of the offset in the name of an object, padded with zeros."""
    part_size: Annotated[
        Annotated[int, Size(minimum=5 * MI, maximum=2 * GI, owner="S3's")], description(key="s3.part.size")
    ] = 25 * MI
    """Size of the parts of an upload. A part ends with the record that reaches this size."""


class S3Spec(KeySettings):
    """Bucket and S3 endpoint of the objects."""

    bucket: Annotated[Bucket, description(key="s3.bucket.name", example="flights-archive")]
    """Bucket of the objects."""
    region: Annotated[Region | None, description(key="s3.region", example="eu-central-1")] = None
    """Region of the bucket. Default: from the environment."""
    endpoint: Annotated[Endpoint | None, description(key="store.url", example="https://minio.example.com:9000")] = None
    """URL of an S3-compatible store. http:// requires insecure: true, except on loopback."""
    path_style: Annotated[StrictBool, description(key="s3.path.style.access.enabled")] = False
    """Path-style addressing: the bucket is in the path instead of the host name."""
    insecure: StrictBool = False
    """Allow an endpoint without TLS. Data and signatures are sent unencrypted."""
    credentials: Annotated[
        SecretRef | None, description(key="aws.access.key.id, aws.secret.access.key", example={"secret": "s3-keys"})
    ] = None
    """Secret with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and optionally AWS_SESSION_TOKEN. Default: the default
    credential chain of AWS."""
    ca_secret: Annotated[SecretKey | None, description(example={"secret": "store-ca", "key": "ca.crt"})] = None
    """CA certificates (PEM) of the endpoint."""

    @property
    def allows_http(self) -> bool:
        """Whether an endpoint without TLS is allowed: with `insecure`, or on loopback."""
        return self.insecure or (self.endpoint is not None and is_loopback(self.endpoint))


class ErrorsSpec(SpecModel):
    """Handling of records that cannot be written."""

    tolerance: Annotated[Tolerance, description(key="errors.tolerance")] = Tolerance.NONE
    """None: stop at such a record. All: drop it and count it."""
    on_null_value: Annotated[OnNullValue, description(key="behavior.on.null.values")] = OnNullValue.FAIL
    """Handling of records without a value (tombstones)."""
    dead_letter_topic: Annotated[
        TopicName | None, description(key="errors.deadletterqueue.topic.name", example="flights-refused")
    ] = None
    """Topic for records that cannot be written, with tolerance All."""


class RoundsSpec(SpecModel):
    """Size of a round. Affects throughput and latency, never the content of objects."""

    min_bytes: Annotated[int, Size()] = 8 * MI
    """A topic-partition with fewer bytes to read waits for at most maxDelay."""
    max_delay: Annotated[int, Duration(maximum=DAY)] = 10 * SECOND
    """Maximum time that a topic-partition waits for minBytes."""
    max_bytes: Annotated[int, Size(minimum=1)] = 512 * MI
    """Maximum number of bytes that a round reads of a topic-partition."""
    max_records: Annotated[StrictInt | None, description(ge=1, le=_SAFE_INTEGER)] = None
    """Maximum number of records that a round reads of a topic-partition."""
