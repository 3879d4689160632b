"""Enumerations of the manifest. Values are CamelCase, as in YAML."""

from __future__ import annotations

from enum import StrEnum

from sink_job.api.units.quantities import DAY, HOUR


class StartingOffsets(StrEnum):
    EARLIEST = "Earliest"
    LATEST = "Latest"


class ObjectsAtStart(StrEnum):
    REJECT = "Reject"
    ACCEPT = "Accept"
    ACCEPT_NEWEST = "AcceptNewest"


class IsolationLevel(StrEnum):
    READ_COMMITTED = "ReadCommitted"
    READ_UNCOMMITTED = "ReadUncommitted"


class LoginType(StrEnum):
    SCRAM_512 = "Scram512"
    SCRAM_256 = "Scram256"
    PLAIN = "Plain"
    CERTIFICATE = "Certificate"
    OAUTH = "OAuth"
    MSK_IAM = "MskIam"


class ConverterType(StrEnum):
    JSON = "Json"
    CONNECT_JSON = "ConnectJson"
    TEXT = "Text"
    BYTES = "Bytes"
    CBOR = "Cbor"
    MESSAGE_PACK = "MessagePack"
    AVRO = "Avro"
    PROTOBUF = "Protobuf"
    JSON_SCHEMA = "JsonSchema"

    @property
    def needs_registry(self) -> bool:
        """True if the schemas of records are in a schema registry."""
        return self in (ConverterType.AVRO, ConverterType.PROTOBUF, ConverterType.JSON_SCHEMA)

    @property
    def has_schemas(self) -> bool:
        """True if records have schemas."""
        return self.needs_registry or self is ConverterType.CONNECT_JSON


class RegistryType(StrEnum):
    CONFLUENT = "Confluent"
    APICURIO = "Apicurio"
    GLUE = "Glue"


class ApicurioIdType(StrEnum):
    CONTENT_ID = "ContentId"
    GLOBAL_ID = "GlobalId"


class SubjectNameStrategy(StrEnum):
    TOPIC_NAME = "TopicName"
    RECORD_NAME = "RecordName"
    TOPIC_RECORD_NAME = "TopicRecordName"


class UnknownIds(StrEnum):
    FAIL = "Fail"
    REJECT = "Reject"


class SchemaIdLocation(StrEnum):
    VALUE = "Value"
    HEADER = "Header"
    EITHER = "Either"


class DeadLetterDelivery(StrEnum):
    EXACTLY_ONCE = "ExactlyOnce"
    AT_LEAST_ONCE = "AtLeastOnce"


class DecimalFormat(StrEnum):
    BASE64 = "Base64"
    NUMERIC = "Numeric"


class TimestampFormat(StrEnum):
    NUMBER = "Number"
    ISO = "Iso"


class OutputFormat(StrEnum):
    JSON = "Json"
    BYTES = "Bytes"
    AVRO = "Avro"
    PARQUET = "Parquet"

    @property
    def has_datums(self) -> bool:
        """True if objects contain Avro data, or are made of it."""
        return self in (OutputFormat.AVRO, OutputFormat.PARQUET)


class UnknownFields(StrEnum):
    FAIL = "Fail"
    DROP = "Drop"
    JSON = "Json"


class SchemaInference(StrEnum):
    NONE = "None"
    ONCE = "Once"


class LogicalTypes(StrEnum):
    ALL = "All"
    AS_CONNECTOR = "AsConnector"


class TimeUnit(StrEnum):
    MICROS = "Micros"
    AS_SCHEMA = "AsSchema"


class CompressionCodec(StrEnum):
    NONE = "None"
    GZIP = "Gzip"
    ZSTD = "Zstd"
    SNAPPY = "Snappy"
    LZ4 = "Lz4"
    BROTLI = "Brotli"
    DEFLATE = "Deflate"
    BZIP2 = "Bzip2"


class PartitionerType(StrEnum):
    DEFAULT = "Default"
    FIELD = "Field"
    TIME = "Time"
    HOURLY = "Hourly"
    DAILY = "Daily"
    FIELD_AND_TIME = "FieldAndTime"

    @property
    def uses_time(self) -> bool:
        """True if the path of a record depends on its time."""
        return self not in (PartitionerType.DEFAULT, PartitionerType.FIELD)

    @property
    def uses_fields(self) -> bool:
        """True if the path of a record depends on fields of its value."""
        return self in (PartitionerType.FIELD, PartitionerType.FIELD_AND_TIME)

    @property
    def duration(self) -> int | None:
        """The time span of one path in ms, for a type with a fixed span; None if the manifest sets it."""
        return {PartitionerType.HOURLY: HOUR, PartitionerType.DAILY: DAY}.get(self)

    def path_format(self, directory_delimiter: str) -> str | None:
        """The connector's date pattern, for a type with a fixed pattern; None if the manifest sets it."""
        elements = ["'year'=YYYY", "'month'=MM", "'day'=dd", "'hour'=HH"]
        count = {PartitionerType.HOURLY: 4, PartitionerType.DAILY: 3}.get(self)
        return directory_delimiter.join(elements[:count]) if count else None


class TimestampExtractor(StrEnum):
    WALLCLOCK = "Wallclock"
    RECORD = "Record"
    RECORD_FIELD = "RecordField"


class SchemaNamePosition(StrEnum):
    NONE = "None"
    PREFIX = "Prefix"
    SUFFIX = "Suffix"


class RotationScope(StrEnum):
    PARTITION = "Partition"
    OBJECT = "Object"


class SchemaCompatibility(StrEnum):
    NONE = "None"
    SEPARATE = "Separate"
    BACKWARD = "Backward"
    FORWARD = "Forward"
    FULL = "Full"

    @property
    def projects(self) -> bool:
        """True if records are projected to the schema of the open object."""
        return self in (SchemaCompatibility.BACKWARD, SchemaCompatibility.FULL, SchemaCompatibility.FORWARD)


class Tolerance(StrEnum):
    NONE = "None"
    ALL = "All"


class OnNullValue(StrEnum):
    FAIL = "Fail"
    IGNORE = "Ignore"
    WRITE = "Write"


class OnDataLoss(StrEnum):
    FAIL = "Fail"
    CONTINUE = "Continue"


class ExecutorMode(StrEnum):
    LOCAL = "Local"
    CLUSTER = "Cluster"


class ScalingMode(StrEnum):
    FIXED = "Fixed"
    AUTO = "Auto"


class MemoryMode(StrEnum):
    DISABLED = "Disabled"
    RECOMMEND = "Recommend"
    AUTO = "Auto"


class DesiredState(StrEnum):
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"


class DeletionPolicy(StrEnum):
    RETAIN = "Retain"
    PUBLISH = "Publish"
    DISCARD = "Discard"


class StopAction(StrEnum):
    """What a driver does at SIGTERM. It is not in the manifest: the operator sends it with its polls."""

    EXIT = "Exit"
    """End within seconds; open objects stay open."""
    ASK = "Ask"
    """Continue until the operator has sent one of the others."""
    PUBLISH = "Publish"
    """Publish the open objects and end."""


class ResetTo(StrEnum):
    EARLIEST = "Earliest"
    LATEST = "Latest"
    TIMESTAMP = "Timestamp"
    OFFSETS = "Offsets"


class OnExisting(StrEnum):
    FAIL = "Fail"
    OVERWRITE = "Overwrite"
    NEW_PREFIX = "NewPrefix"


class TransformType(StrEnum):
    INSERT = "Insert"
    KEEP = "Keep"
    DROP = "Drop"
    RENAME = "Rename"
    MASK = "Mask"
    CAST = "Cast"
    FLATTEN = "Flatten"
    EXTRACT = "Extract"
    HOIST = "Hoist"
    TIMESTAMP = "Timestamp"
    FILTER = "Filter"
    UNWRAP = "Unwrap"


class DeletedRows(StrEnum):
    DROP = "Drop"
    TOMBSTONE = "Tombstone"
    REWRITE = "Rewrite"
    REWRITE_WITH_TOMBSTONE = "RewriteWithTombstone"


class InsertSource(StrEnum):
    TOPIC = "Topic"
    PARTITION = "Partition"
    OFFSET = "Offset"
    TIMESTAMP = "Timestamp"
    TEXT = "Text"


class CastType(StrEnum):
    INT8 = "Int8"
    INT16 = "Int16"
    INT32 = "Int32"
    INT64 = "Int64"
    FLOAT32 = "Float32"
    FLOAT64 = "Float64"
    BOOLEAN = "Boolean"
    TEXT = "Text"


class TimestampType(StrEnum):
    TEXT = "Text"
    UNIX_TIME = "UnixTime"
    DATE = "Date"
    TIME = "Time"
    TIMESTAMP = "Timestamp"


class UnixTimeUnit(StrEnum):
    SECONDS = "Seconds"
    MILLISECONDS = "Milliseconds"
    MICROSECONDS = "Microseconds"
    NANOSECONDS = "Nanoseconds"


class TablePartitioning(StrEnum):
    PATH = "Path"
    HIDDEN = "Hidden"
    NONE = "None"


class OnMissing(StrEnum):
    STOP = "Stop"
    SKIP = "Skip"


class OnTableChange(StrEnum):
    STOP = "Stop"
    NEW_TABLE = "NewTable"


class CatalogType(StrEnum):
    REST = "Rest"
    GLUE = "Glue"
    GLUE_PARTITIONS = "GluePartitions"
    HIVE = "Hive"
    HIVE_PARTITIONS = "HivePartitions"
    SQL = "Sql"

    @property
    def is_iceberg(self) -> bool:
        """Whether its tables are those of Iceberg, and not of Hive's kind."""
        return self not in (CatalogType.GLUE_PARTITIONS, CatalogType.HIVE_PARTITIONS)

    @property
    def is_glue(self) -> bool:
        """Whether it is AWS Glue."""
        return self in (CatalogType.GLUE, CatalogType.GLUE_PARTITIONS)
