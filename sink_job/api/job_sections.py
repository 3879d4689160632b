"""What the data path reads of a manifest: where records come from, how they are cut, where objects go."""

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
    """A whole secret, by name: a Kubernetes Secret, or on a laptop a directory given by `--secret name=dir`."""

    secret: Annotated[ObjectName, description(example="s3-keys")]
    """Name of the secret."""


class SecretKey(SecretRef):
    """One value in a secret."""

    key: Annotated[DataKey, description(example="ca.crt")]
    """Key in the secret whose value is taken."""


class PropertySecret(SecretKey):
    """A Kafka client property whose value stands in a secret and never in the manifest."""

    name: Annotated[PropertyName, description(example="sasl.jaas.config")]
    """The Kafka client property to set."""


class KafkaSpec(SpecModel):
    """Where records come from, and how Kafka is reached."""

    bootstrap_servers: Annotated[BootstrapServers, description(example="kafka.example.com:9092")]
    """Brokers to ask first: host:port, separated by commas."""
    topics: Annotated[
        list[TopicName] | None, description(key="topics", example=["flights"], min_length=1, max_length=1000)
    ] = None
    """Topics to copy. Either this or topicsPattern."""
    topics_pattern: Annotated[TopicsPattern | None, description(key="topics.regex", example="flights-.*")] = None
    """Copy every topic whose whole name matches this regular expression; topics that come later too."""
    group_id: Annotated[GroupId | None, description(example="s3sink-flights")] = None
    """Consumer group whose offsets show the progress. Without it: s3sink-<sink id>."""
    starting_offsets: Annotated[StartingOffsets, description(key="consumer.override.auto.offset.reset")] = (
        StartingOffsets.EARLIEST
    )
    """Where a sink starts that has neither a ledger nor offsets of its group."""
    isolation_level: Annotated[IsolationLevel, description(key="consumer.override.isolation.level")] = (
        IsolationLevel.READ_COMMITTED
    )
    """Whether records of transactions are copied before they are committed."""
    properties: Annotated[dict[str, str], description(example={"security.protocol": "SASL_SSL"}, max_length=200)] = (
        Field(default_factory=dict)
    )
    """Further properties of the Kafka client, without a prefix. What Spark or the sink sets is refused by name."""
    property_secrets: Annotated[
        list[PropertySecret],
        description(example=[{"name": "sasl.jaas.config", "secret": "kafka-login", "key": "jaas"}], max_length=50),
    ] = Field(default_factory=list)
    """Kafka client properties whose values are taken from secrets."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(value) if name == "properties" else value


class FormatSpec(SpecModel):
    """How bytes of Kafka become bytes of objects."""

    converter: Annotated[ConverterType, description(key="value.converter")] = ConverterType.JSON
    """How a record's value is read."""
    key_converter: Annotated[ConverterType | None, description(key="key.converter")] = None
    """How a record's key is read. Without it keys are not read."""
    output: Annotated[OutputFormat, description(key="format.class")] = OutputFormat.JSON
    """What objects hold: lines of JSON, bytes with a separator, Avro or Parquet."""
    compression: Annotated[CompressionCodec, description(key="s3.compression.type, avro.codec, parquet.codec")] = (
        CompressionCodec.NONE
    )
    """How objects are compressed."""
    gzip_level: Annotated[StrictInt, description(key="s3.compression.level", ge=0, le=3)] = 2
    """Effort of Gzip, 0 (quick) to 3 (small), in the levels of ISA-L."""
    bytes_separator: Annotated[str, description(key="format.bytearray.separator", max_length=64)] = "\n"
    """Text written behind every record when output is Bytes: a newline, unless said otherwise; may be empty."""
    bytes_extension: Annotated[Extension, description(key="format.bytearray.extension")] = ".bin"
    """What the names of objects end in when output is Bytes."""
    envelope: StrictBool = False
    """Write key, headers, timestamp, topic, partition and offset beside the value, in the same object."""


class PartitionerSpec(SpecModel):
    """Which S3 directory (path) a record goes to."""

    type: Annotated[PartitionerType, description(key="partitioner.class")] = PartitionerType.DEFAULT
    """What chooses a record's path: its Kafka partition, fields of its value, its time, or fields and time."""
    fields: Annotated[
        list[FieldPath] | None,
        description(key="partition.field.name", example=["carrier", "origin.country"], min_length=1, max_length=32),
    ] = None
    """Fields of the value, dotted where nested, for the types Field and FieldAndTime."""
    duration: Annotated[
        Annotated[int, Duration(minimum=1)] | None, description(key="partition.duration.ms", example="1h")
    ] = None
    """Time that one path spans, for the types Time and FieldAndTime. Hourly is 1h, Daily 1d."""
    path_format: Annotated[
        PathFormat | None, description(key="path.format", example="'year'=YYYY/'month'=MM/'day'=dd")
    ] = None
    """Joda/Java date pattern of the path, for Time and FieldAndTime. Literals stand in single quotes."""
    timezone: Annotated[Timezone | None, description(key="timezone", example="Europe/Berlin")] = None
    """Zone of paths and of rotation.scheduleInterval: an IANA name or an offset such as +02:00."""
    locale: Annotated[Locale, description(key="locale")] = "en"
    """Language of the names of months and days in paths."""
    timestamp_extractor: Annotated[TimestampExtractor, description(key="timestamp.extractor")] = (
        TimestampExtractor.WALLCLOCK
    )
    """What a record's time is: the clock at its round, its Kafka timestamp, or a field of its value."""
    timestamp_field: Annotated[FieldPath, description(key="timestamp.field")] = "timestamp"
    """Field of the value, dotted where nested, that holds the time for RecordField."""
    schema_name: Annotated[SchemaNamePosition, description(key="s3.schema.partition.affix.type")] = (
        SchemaNamePosition.NONE
    )
    """Put an element schema_name=<name> before or after the path."""


class RotationSpec(SpecModel):
    """When objects are closed and become visible. At least one of flushSize, interval, scheduleInterval, maxBytes."""

    flush_size: Annotated[StrictInt | None, description(key="flush.size", example=100000, ge=1, le=_SAFE_INTEGER)] = (
        None
    )
    """Close when a topic-partition has this many records in its open objects, over all its paths together."""
    interval: Annotated[
        Annotated[int, Duration(minimum=1)] | None, description(key="rotate.interval.ms", example="10m")
    ] = None
    """Close when a record's time is this much past the first one's. Needs a time partitioner."""
    schedule_interval: Annotated[
        Annotated[int, Duration(minimum=1, maximum=DAY)] | None,
        description(key="rotate.schedule.interval.ms", example="1h"),
    ] = None
    """Close at these points of the day by the clock, counted from midnight in partitioner.timezone."""
    on_path_change: Annotated[StrictBool, description(key="rotate.file.on.partition.change")] = True
    """With interval: close also when a record goes to another path than the one before."""
    max_open_objects: Annotated[
        StrictInt | None, description(key="partitioner.max.open.files", ge=1, le=_SAFE_INTEGER)
    ] = None
    """Close when one more object would be open in a topic-partition than this."""
    max_bytes: Annotated[Annotated[int, Size(minimum=1)] | None, description(example="1Gi")] = None
    """Close at the first record that takes an object to this size or over: encoded, before compression."""
    max_open_time: Annotated[Annotated[int, Duration(minimum=1)] | None, description(example="15m")] = None
    """Close an object that has been open this long by the clock, even if no record follows."""
    scope: RotationScope = RotationScope.PARTITION
    """Whether flushSize, maxBytes and interval count over a topic-partition or for each object alone."""


class KeySettings(SpecModel):
    """The settings of S3 that shape keys and parts."""

    topics_dir: Annotated[TopicsDir, description(key="topics.dir")] = "topics"
    """First element of every key; may be empty. The sink's ledger is below it, so it cannot be edited."""
    directory_delimiter: Annotated[Delimiter, description(key="directory.delim")] = "/"
    """Text between the directories of a key. After an edit open objects are finished under the old one."""
    file_delimiter: Annotated[FileDelimiter, description(key="file.delim")] = "+"
    """Text between topic, partition and offset in an object's name."""
    offset_pad_width: Annotated[StrictInt, description(key="filename.offset.zero.pad.width", ge=0, le=64)] = 10
    """Digits to which the offset in an object's name is padded with zeros."""
    part_size: Annotated[
        Annotated[int, Size(minimum=5 * MI, maximum=2 * GI, owner="S3's")], description(key="s3.part.size")
    ] = 25 * MI
    """Size of the parts of an upload. A part ends at the first record at or past it."""


class S3Spec(KeySettings):
    """Where objects go, and how S3 is reached."""

    bucket: Annotated[Bucket, description(key="s3.bucket.name", example="flights-archive")]
    """Bucket of the objects."""
    region: Annotated[Region | None, description(key="s3.region", example="eu-central-1")] = None
    """Region of the bucket. Without it: what the environment says."""
    endpoint: Annotated[Endpoint | None, description(key="store.url", example="https://minio.example.com:9000")] = None
    """URL of a store other than AWS. http:// needs insecure: true, except on loopback."""
    path_style: Annotated[StrictBool, description(key="s3.path.style.access.enabled")] = False
    """Address the bucket in the path instead of the host name."""
    insecure: StrictBool = False
    """Allow an endpoint without TLS: data and signatures go in the clear."""
    credentials: Annotated[
        SecretRef | None, description(key="aws.access.key.id, aws.secret.access.key", example={"secret": "s3-keys"})
    ] = None
    """Secret with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if need be, AWS_SESSION_TOKEN. Without it: the
    default chain of AWS."""
    ca_secret: Annotated[SecretKey | None, description(example={"secret": "store-ca", "key": "ca.crt"})] = None
    """Certificates (PEM) that the endpoint's own must be signed by."""

    @property
    def allows_http(self) -> bool:
        """Whether an endpoint without TLS may be used: said so, or on this very machine."""
        return self.insecure or (self.endpoint is not None and is_loopback(self.endpoint))


class ErrorsSpec(SpecModel):
    """What happens to records that cannot be written."""

    tolerance: Annotated[Tolerance, description(key="errors.tolerance")] = Tolerance.NONE
    """None: stop before such a record. All: drop it, with a count, or send it to the dead-letter topic."""
    on_null_value: Annotated[OnNullValue, description(key="behavior.on.null.values")] = OnNullValue.FAIL
    """What to do with records that have no value (tombstones)."""
    dead_letter_topic: Annotated[
        TopicName | None, description(key="errors.deadletterqueue.topic.name", example="flights-refused")
    ] = None
    """Topic for records that cannot be written, with tolerance All."""


class RoundsSpec(SpecModel):
    """How much is read at once. Changes speed and delay, never what objects hold."""

    min_bytes: Annotated[int, Size()] = 8 * MI
    """A topic-partition with less than this to read waits, at most maxDelay."""
    max_delay: Annotated[int, Duration(maximum=DAY)] = 10 * SECOND
    """Longest time a topic-partition waits for minBytes."""
    max_bytes: Annotated[int, Size(minimum=1)] = 512 * MI
    """Most that one round reads of a topic-partition."""
    max_records: Annotated[StrictInt | None, description(ge=1, le=_SAFE_INTEGER)] = None
    """Most records that one round reads of a topic-partition."""
