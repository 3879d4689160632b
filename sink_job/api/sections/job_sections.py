"""The sections of a manifest for the data path: Kafka, format, partitioner, rotation, S3, errors and rounds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from sink_job.api.aws_types import Account, CannedAcl, StorageClass, TagErrors, TagValue
from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import (
    DeadLetterDelivery,
    IsolationLevel,
    ObjectsAtStart,
    OnNullValue,
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
    DeadLetterPrefix,
    Delimiter,
    Endpoint,
    FieldPath,
    FileDelimiter,
    GroupId,
    KeyPrefix,
    Locale,
    PathFormat,
    PropertyName,
    Region,
    Timezone,
    TombstonePath,
    TopicName,
    TopicsDir,
    TopicsPattern,
    is_loopback,
)
from sink_job.api.rules.reserved_properties import redacted
from sink_job.api.sections.aws_access import (
    AssumeRoleSpec,
    EncryptionSpec,
    LedgerSpec,
    ObjectLockSpec,
    ProxySpec,
)
from sink_job.api.sections.login_section import LoginSpec
from sink_job.api.sections.secret_refs import SecretKey, SecretRef
from sink_job.api.sections.skip_section import SkipList
from sink_job.api.topic_partition import TopicPartition
from sink_job.api.units.quantities import DAY, GI, HOUR, MI, MINUTE, SECOND, Duration, Size

_SAFE_INTEGER = 2**53 - 1


class PropertySecret(SecretKey):
    """A Kafka client property with its value in a secret."""

    name: Annotated[PropertyName, description(example="sasl.jaas.config")]
    """The Kafka client property to set."""


class KafkaSpec(SpecModel):
    """The source topics and the connection to Kafka."""

    bootstrap_servers: Annotated[BootstrapServers, description(example="kafka.example.com:9092")]
    """Bootstrap brokers: host:port, separated by commas."""
    topics: Annotated[
        list[TopicName] | None, description(key="topics", example=["flights"], min_length=1, max_length=1000)
    ] = None
    """Topics to copy. Set either topics or topicsPattern."""
    topics_pattern: Annotated[TopicsPattern | None, description(key="topics.regex", example="flights-.*")] = None
    """Regular expression of topics to copy, including topics created later. It must match the whole topic name."""
    group_id: Annotated[GroupId | None, description(example="s3sink-flights")] = None
    """Consumer group for committed offsets. Default: s3sink-<sink id>."""
    starting_offsets: Annotated[StartingOffsets, description(key="consumer.override.auto.offset.reset")] = (
        StartingOffsets.EARLIEST
    )
    """Start position of a sink without a ledger and without committed offsets."""
    existing_objects: ObjectsAtStart = ObjectsAtStart.REJECT
    """First start only: handling of objects of another writer, such as a Kafka Connect connector, at or behind the
    group's offsets. Reject: stop. Accept: compare their records with Kafka and start behind them. AcceptNewest: the
    same, and start behind the newest object where Kafka has forgotten the group's offset."""
    isolation_level: Annotated[IsolationLevel, description(key="consumer.override.isolation.level")] = (
        IsolationLevel.READ_COMMITTED
    )
    """ReadCommitted: copy records of a transaction after its commit. ReadUncommitted: copy them at once, including
    those of aborted transactions."""
    login: LoginSpec | None = None
    """How the sink logs in to Kafka. Default: by properties and propertySecrets, if at all."""
    properties: Annotated[dict[str, str], description(example={"security.protocol": "SASL_SSL"}, max_length=200)] = (
        Field(default_factory=dict)
    )
    """Additional properties of the Kafka client, without a prefix. Properties set by the sink or by Spark are
    rejected; a name that the client does not know is a warning in the log of the driver."""
    property_secrets: Annotated[
        list[PropertySecret],
        description(example=[{"name": "sasl.jaas.config", "secret": "kafka-login", "key": "jaas"}], max_length=50),
    ] = Field(default_factory=list)
    """Kafka client properties with values from secrets."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(value) if name == "properties" else value


class PartitionerSpec(SpecModel):
    """How a record is assigned to a directory (path) in S3."""

    type: Annotated[PartitionerType, description(key="partitioner.class")] = PartitionerType.DEFAULT
    """Source of a record's path: its Kafka partition, its fields, its time, or fields and time."""
    fields: Annotated[
        list[FieldPath] | None,
        description(key="partition.field.name", example=["carrier", "origin.country"], min_length=1, max_length=32),
    ] = None
    """Fields for the types Field and FieldAndTime: of the value (use dots for nested fields), $key, $key.<field>,
    $header.<name>, $topic, $partition. $value.<field> is a field of the value whose name begins with $."""
    duration: Annotated[
        Annotated[int, Duration(minimum=1)] | None, description(key="partition.duration.ms", example="1h")
    ] = None
    """Time span of one path for the types Time and FieldAndTime. Hourly uses 1h, Daily uses 1d."""
    path_format: Annotated[
        PathFormat | None, description(key="path.format", example="'year'=YYYY/'month'=MM/'day'=dd")
    ] = None
    """Joda/Java date pattern of the path for the types Time and FieldAndTime. Put literal text in single quotes."""
    timezone: Annotated[Timezone | None, description(key="timezone", example="Europe/Berlin")] = None
    """Time zone of paths and of rotation.scheduleInterval: an IANA name or an offset such as +02:00."""
    locale: Annotated[Locale, description(key="locale")] = "en"
    """Language of month and day names in paths."""
    timestamp_extractor: Annotated[TimestampExtractor, description(key="timestamp.extractor")] = (
        TimestampExtractor.WALLCLOCK
    )
    """Source of a record's time: the wall clock of its round, its Kafka timestamp, or a field."""
    timestamp_field: Annotated[FieldPath, description(key="timestamp.field")] = "timestamp"
    """Field with the record's time, for RecordField: of the value (use dots for a nested field), $header.<name>, $key
    or $key.<field>."""
    schema_name: Annotated[SchemaNamePosition, description(key="s3.schema.partition.affix.type")] = (
        SchemaNamePosition.NONE
    )
    """Add an element schema_name=<name> before or after the path, with the name of the record's schema; null for a
    record without a schema, or with a schema without a name."""


class RotationSpec(SpecModel):
    """When objects are closed and become visible. Set at least one of flushSize, interval, scheduleInterval and
    maxBytes."""

    flush_size: Annotated[StrictInt | None, description(key="flush.size", example=100000, ge=1, le=_SAFE_INTEGER)] = (
        None
    )
    """Close all open objects of a topic-partition when they contain this many records in total, over all paths."""
    interval: Annotated[
        Annotated[int, Duration(minimum=1)] | None, description(key="rotate.interval.ms", example="10m")
    ] = None
    """Close when a record's time is at least this much later than the time of the first record. Needs a time
    partitioner."""
    schedule_interval: Annotated[
        Annotated[int, Duration(minimum=1, maximum=DAY)] | None,
        description(key="rotate.schedule.interval.ms", example="1h"),
    ] = None
    """Close at multiples of this interval by the wall clock, counted from midnight in partitioner.timezone."""
    on_path_change: Annotated[StrictBool, description(key="rotate.file.on.partition.change")] = True
    """With interval: also close when the path of a record differs from the path of the record before."""
    max_open_objects: Annotated[
        StrictInt | None, description(key="partitioner.max.open.files", ge=1, le=_SAFE_INTEGER)
    ] = None
    """Maximum number of open objects of a topic-partition. Close them before one more is opened."""
    max_bytes: Annotated[Annotated[int, Size(minimum=1)] | None, description(example="1Gi")] = None
    """Close at the first record that makes an object at least this large. The size is encoded and uncompressed."""
    max_open_time: Annotated[Annotated[int, Duration(minimum=1)] | None, description(example="15m")] = None
    """Close an object that has been open this long by the wall clock, even if no record follows."""
    scope: RotationScope = RotationScope.PARTITION
    """Partition: flushSize, maxBytes and interval apply to all open objects of a topic-partition together. Object: they
    apply to each object separately."""


class TopicPrefix(SpecModel):
    """The directory of a topic's objects."""

    topic: Annotated[TopicName | None, description(example="flights")] = None
    """One topic. Set either topic or pattern."""
    pattern: Annotated[TopicsPattern | None, description(example="flights-.*")] = None
    """Regular expression for the whole name of topics."""
    prefix: Annotated[KeyPrefix, description(example="archive/flights")]
    """Directories after topicsDir, before the topic or, with topicInPath: false, before the path."""

    def covers(self, topic: str) -> bool:
        """Whether this entry is for `topic`."""
        if self.pattern is None:
            return topic == self.topic
        return re.fullmatch(self.pattern, topic) is not None


class KeySettings(SpecModel):
    """The settings for object keys and part sizes."""

    topics_dir: Annotated[TopicsDir, description(key="topics.dir")] = "topics"
    """First element of every key. May be empty. The ledger is stored below it, so it cannot be changed."""
    directory_delimiter: Annotated[Delimiter, description(key="directory.delim")] = "/"
    """Text between the directories of a key. After a change, open objects keep the old delimiter."""
    file_delimiter: Annotated[FileDelimiter, description(key="file.delim")] = "+"
    """Text between topic, partition and offset in the name of an object."""
    offset_pad_width: Annotated[StrictInt, description(key="filename.offset.zero.pad.width", ge=0, le=64)] = 10
    """Minimum number of digits of the offset in the name of an object, padded with zeros."""
    part_size: Annotated[
        Annotated[int, Size(minimum=5 * MI, maximum=2 * GI, owner="S3's")], description(key="s3.part.size")
    ] = 25 * MI
    """Minimum size of the parts of an upload. A part ends with the first record that reaches this size."""
    equal_parts: Annotated[StrictBool, Field(exclude_if=lambda value: not value)] = False
    """All parts of an object but the last have exactly partSize bytes, for stores that demand it (Cloudflare R2). A
    part may then end inside a record. Open objects are closed before a change applies."""
    prefixes: Annotated[
        list[TopicPrefix],
        description(example=[{"topic": "flights", "prefix": "archive/flights"}], max_length=100),
        Field(exclude_if=lambda value: not value),
    ] = Field(default_factory=list)
    """Directories of topics, between topicsDir and the topic in keys. The first entry for a topic applies; a topic
    without one has none. After a change, open objects keep their keys."""
    topic_in_path: Annotated[StrictBool, Field(exclude_if=lambda value: value)] = True
    """The topic is a directory of its keys. With false it is in the name of the object alone. After a change, open
    objects keep their keys."""

    @property
    def has_plain_names(self) -> bool:
        """True if the topic is the directory after topicsDir, as with the connector."""
        return self.topic_in_path and not self.prefixes

    def directory(self, topic: str) -> str:
        """What the keys of a topic's objects begin with, without the delimiter before their path; empty for the root of
        the bucket."""
        prefix = next((each.prefix for each in self.prefixes if each.covers(topic)), None)
        return self.joined(prefix, topic)

    def joined(self, prefix: str | None, topic: str) -> str:
        """`directory` of a topic with this prefix."""
        return self.directory_delimiter.join(
            each for each in (self.topics_dir, prefix, topic if self.topic_in_path else None) if each
        )


class S3Spec(KeySettings):
    """The bucket and the connection to S3."""

    bucket: Annotated[Bucket, description(key="s3.bucket.name", example="flights-archive")]
    """Bucket for the objects."""
    region: Annotated[Region | None, description(key="s3.region", example="eu-central-1")] = None
    """Region of the bucket. Default: the region of the environment."""
    endpoint: Annotated[Endpoint | None, description(key="store.url", example="https://minio.example.com:9000")] = None
    """URL of an S3-compatible store. Default: AWS. http:// needs insecure: true, except on loopback."""
    path_style: Annotated[StrictBool, description(key="s3.path.style.access.enabled", operator_default=True)] = False
    """Put the bucket into the path of URLs instead of the host name."""
    insecure: Annotated[StrictBool, description(operator_default=True)] = False
    """Allow an endpoint without TLS. Data and signatures are then not encrypted."""
    credentials: Annotated[
        SecretRef | None, description(key="aws.access.key.id, aws.secret.access.key", example={"secret": "s3-keys"})
    ] = None
    """Secret with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and optionally AWS_SESSION_TOKEN. Default: the
    credential chain of AWS."""
    ca_secret: Annotated[SecretKey | None, description(example={"secret": "store-ca", "key": "ca.crt"})] = None
    """CA certificates (PEM) to verify the endpoint's certificate."""
    assume_role: Annotated[
        AssumeRoleSpec | None,
        description(
            key="s3.credentials.provider.sts.role.*", example={"arn": "arn:aws:iam::123456789012:role/archive"}
        ),
    ] = None
    """IAM role for all requests to S3, such as one of the bucket's account. It is assumed with credentials, or with the
    credential chain of AWS. A session policy limits it to the keys below topicsDir and errors.deadLetters.prefix."""

    ledger: LedgerSpec | None = None
    """Another place for ledger and staging: for locked buckets and buckets of other accounts, and for readers that list
    everything. Default: below topicsDir. It cannot be changed after the sink's first start."""

    proxy: ProxySpec | None = None
    """HTTP proxy. Default: that of the environment (HTTPS_PROXY, NO_PROXY)."""

    encryption: EncryptionSpec | None = None
    """Encryption by the store. Default: that of the bucket. A change applies to what is written after it; an open
    object keeps the encryption with which it was started."""
    object_lock: ObjectLockSpec | None = None
    """Object Lock of objects. Default: none. A bucket with a default retention needs ledger, with another
    bucket: it would lock ledger and staging, too. A change applies to objects whose upload starts after it."""
    storage_class: StorageClass | None = None
    """Storage class of objects. Default: that of the store. Classes that cannot be read back at once (Glacier Flexible
    Retrieval, Deep Archive) are rejected: use a lifecycle rule for them."""
    acl: Annotated[CannedAcl | None, description(key="s3.acl.canned", example="BucketOwnerFullControl")] = None
    """Access control list of objects. Default: none is sent. AWS rejects all but BucketOwnerFullControl unless ACLs are
    enabled for the bucket. BucketOwnerFullControl is also sent with ledger and staging, since policies of buckets in
    other accounts demand it of all that is written."""
    tags: Annotated[
        dict[str, TagValue],
        description(key="s3.object.tagging.key.value.pairs", example={"team": "orders"}, max_length=10),
    ] = Field(default_factory=dict)
    """Tags of objects. storageClass, acl and tags are set when an upload starts; class and tags not for ledger and
    staging."""
    offset_tags: Annotated[StrictBool, description(key="s3.object.tagging")] = False
    """Add the tags startOffset, endOffset (inclusive) and recordCount to each object, beside up to seven in tags. They
    are put when the object is visible, and before the group's offset passes it."""
    on_tag_error: Annotated[TagErrors, description(key="s3.object.behavior.on.tagging.error")] = TagErrors.IGNORE
    """With offsetTags: Ignore logs that an object has no tags, Fail ends the driver; the next one puts them."""

    accelerate: Annotated[StrictBool, description(key="s3.wan.mode")] = False
    """Use the accelerated endpoint of the bucket, which has to be enabled for it; only AWS, without endpoint and
    pathStyle."""
    dual_stack: StrictBool = False
    """Use the endpoint of AWS for IPv6 and IPv4; only AWS, without endpoint."""
    requester_pays: StrictBool = False
    """Pay for the requests to a bucket whose owner demands it."""
    expected_bucket_owner: Annotated[Account | None, description(example="123456789012")] = None
    """Account that must own the bucket: AWS rejects each request to a bucket of another account."""
    anonymous: StrictBool = False
    """Send requests without a signature; without credentials and assumeRole. AWS lets no anonymous client start a
    multipart upload, so it is for other stores, and for the commands that only read."""
    retry_for: Annotated[int, Duration(maximum=HOUR)] = 2 * MINUTE
    """How long a failed request is tried again. 0s: not at all."""
    expire_after: Annotated[Annotated[int, Duration(minimum=DAY)] | None, description(example="400d")] = None
    """Age at which a lifecycle rule of the bucket removes objects. s3sink verify counts missing objects that are at
    least as old as removed, and s3sink repair leaves them alone. The sink itself removes nothing."""

    @property
    def ledger_front(self) -> str:
        """What the keys of ledger and staging begin with before topicsDir; empty if they are in the objects' bucket,
        below topicsDir. It contains the objects' bucket, so that two buckets have different ledgers."""
        if self.ledger is None:
            return ""
        return f"{self.ledger.prefix}/{self.bucket}/" if self.ledger.prefix else f"{self.bucket}/"

    @property
    def allows_http(self) -> bool:
        """True if an endpoint without TLS is allowed: with insecure, or on loopback."""
        return self.insecure or (self.endpoint is not None and is_loopback(self.endpoint))


class DeadLettersSpec(SpecModel):
    """Where records that cannot be written go, and how many there may be."""

    topic: Annotated[
        TopicName | None, description(key="errors.deadletterqueue.topic.name", example="flights-rejected")
    ] = None
    """Topic for records that cannot be written. It must exist, and the sink must not read it. Needs tolerance All."""
    headers: Annotated[StrictBool, description(key="errors.deadletterqueue.context.headers.enable")] = True
    """Add the headers __connect.errors.* of Kafka Connect to the records in the topic. The header s3sink.id, with sink,
    topic, partition and offset, is always there."""
    delivery: DeadLetterDelivery = DeadLetterDelivery.EXACTLY_ONCE
    """ExactlyOnce: one Kafka transaction for the records of a round; consumers with read_committed see each once.
    AtLeastOnce: no transactions; after a crash a record can be in the topic twice, with the same s3sink.id."""
    prefix: Annotated[DeadLetterPrefix | None, description(example="rejected")] = None
    """First element of the keys of dead-letter objects: JSON lines with the records that cannot be written, each
    exactly once. Needs tolerance All."""
    null_values: Annotated[StrictBool, description(key="report.null.values.to.dlq")] = False
    """Records without a value, which onNullValue: Ignore drops, are dead letters, too. They do not count for
    maxShare."""
    max_share: Annotated[StrictFloat, description(ge=0, le=1)] = 0.5
    """With tolerance All: stop if more than this share of a topic-partition's records, and at least 100, are rejected
    in a round. Nothing of the round is recorded then. 1: never stop."""


class DeadLetterSettings(SpecModel):
    """The settings that determine keys and records of dead-letter objects. `null_values`: with records without a value
    that are ignored. `topic`: the Kafka topic for their records. `staged`: they exist only until their records are in
    the topic, below a prefix in the ledger's folder."""

    prefix: str
    on_null_value: OnNullValue
    null_values: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    topic: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None
    staged: Annotated[bool, Field(exclude_if=lambda value: not value)] = False


class NullValueSettings(SpecModel):
    """Records without a value are written. `tombstone_path`: the path of all of them; None: only of those whose path
    would need the value."""

    tombstone_path: str | None = None


class ErrorsSpec(SpecModel):
    """Handling of records that cannot be written."""

    tolerance: Annotated[Tolerance, description(key="errors.tolerance")] = Tolerance.NONE
    """None: stop before such a record. All: write it to deadLetters, or drop and count it."""
    on_null_value: Annotated[OnNullValue, description(key="behavior.on.null.values")] = OnNullValue.FAIL
    """Handling of records without a value (tombstones). Fail: a data error. Ignore: drop them. Write: write them with
    their envelope, in which valueIsNull is true; needs format.envelope."""
    tombstone_path: Annotated[
        TombstonePath | None, description(key="tombstone.encoded.partition", example="tombstone")
    ] = None
    """With onNullValue: Write, the path of records without a value. Default: the path of other records or, if that
    needs the value, tombstone."""
    dead_letters: DeadLettersSpec = DeadLettersSpec()
    """Where records that cannot be written go, and how many there may be."""
    skip: Annotated[SkipList, description(example=[{"topic": "flights", "partition": 0, "offset": 42}])] = Field(
        default_factory=list
    )
    """Records that are passed over, whether they are valid or not: they are in no object and are no dead letters. What
    the sink has already read stays as it is. kubectl s3sink skip adds records by the annotation s3sink.io/skip."""

    def skipped_offsets(self) -> dict[TopicPartition, list[int]]:
        """The offsets to pass over by topic-partition, ascending."""
        found: dict[TopicPartition, list[int]] = {}
        for each in self.skip:
            found.setdefault(each.topic_partition, []).append(each.offset)
        return found

    def null_values(self) -> NullValueSettings | None:
        """The settings of written records without a value; None if they are not written."""
        if self.on_null_value is not OnNullValue.WRITE:
            return None
        return NullValueSettings(tombstone_path=self.tombstone_path)

    def object_settings(self, ledger: str) -> DeadLetterSettings | None:
        """The settings of dead-letter objects; None without a prefix and a topic. `ledger`: the ledger's folder."""
        topic, prefix = self.dead_letters.topic, self.dead_letters.prefix
        if prefix is None and topic is None:
            return None
        return DeadLetterSettings(
            prefix=f"{ledger}/dead-letters" if prefix is None else prefix,
            on_null_value=self.on_null_value,
            null_values=self.dead_letters.null_values,
            topic=topic,
            staged=prefix is None,
        )


class RoundsSpec(SpecModel):
    """Size of the rounds (micro-batches). Affects throughput and latency, never the content of objects."""

    min_bytes: Annotated[int, Size()] = 8 * MI
    """Minimum amount to read from a topic-partition in a round. With less, the topic-partition waits up to maxDelay."""
    max_delay: Annotated[int, Duration(maximum=DAY)] = 10 * SECOND
    """Maximum time that a topic-partition waits for minBytes."""
    max_bytes: Annotated[int, Size(minimum=1)] = 512 * MI
    """Maximum amount that one round reads from a topic-partition."""
    max_records: Annotated[StrictInt | None, description(ge=1, le=_SAFE_INTEGER)] = None
    """Maximum number of records that one round reads from a topic-partition."""
