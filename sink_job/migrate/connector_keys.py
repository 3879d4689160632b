"""The rows of the table for keys of Kafka Connect's sinks and of the S3 sink connector."""

from __future__ import annotations

from typing import Final

from sink_job.migrate.table import KeyRow, Treatment, ValueForm, different, field, without_effect

_CLIENT = "the client properties of the sink's consumer"
_RETRIES = "requests are tried again for `s3.retryFor`, by default two minutes"
_TAGS = "the tags `startOffset`, `endOffset` and `recordCount`, put before the offsets are committed"
_PROXY = "names a secret"
_ROLE = (
    "`arn`, `externalId` and `sessionName`, with the provider `AwsAssumeRoleCredentialsProvider`; assumed with "
    "`s3.credentials` or AWS's default chain"
)
_KEYS_AND_HEADERS = (
    "keys and headers are not written to objects of their own; `format.envelope: true` writes both beside the value, "
    "in the same object"
)
_HIVE = "the connector for S3 does not use it"
_OF_PLATFORM = "only Confluent's platform uses it"
_ONLY_CONVERTERS = "only converters use it, with the prefix `value.converter.`"
_DEAD_LETTERS = "each record once, in a transaction; the topic must exist"

CONNECTOR_KEYS: Final[tuple[KeyRow, ...]] = (
    # Kafka Connect
    field("topics", "kafka.topics", ValueForm.LIST),
    field("topics.regex", "kafka.topicsPattern", ValueForm.SPECIAL),
    field("consumer.override.group.id", "kafka.groupId", ValueForm.SPECIAL, "without it `connect-` and the name"),
    field(
        "consumer.override.auto.offset.reset",
        "kafka.startingOffsets",
        ValueForm.CHOICE,
        "the worker's `consumer.auto.offset.reset` if the connector has none",
    ),
    field(
        "consumer.override.isolation.level",
        "kafka.isolationLevel",
        ValueForm.CHOICE,
        "the connector's default is `ReadUncommitted`",
    ),
    field(
        "consumer.override.*",
        "kafka.properties",
        ValueForm.SPECIAL,
        f"{_CLIENT}; those with a secret become `kafka.propertySecrets`, IAM of MSK `kafka.login`. The sink sets fetch "
        "sizes and the like itself",
    ),
    field("value.converter", "format.converter", ValueForm.CLASS),
    field(
        "key.converter",
        "format.keyConverter",
        ValueForm.CLASS,
        "only if paths or times use `$key`, or with `format.envelope`",
    ),
    field("errors.tolerance", "errors.tolerance", ValueForm.CHOICE),
    field("errors.deadletterqueue.topic.name", "errors.deadLetters.topic", ValueForm.SPECIAL, _DEAD_LETTERS),
    field(
        "errors.deadletterqueue.context.headers.enable",
        "errors.deadLetters.headers",
        ValueForm.SPECIAL,
        "only with a dead-letter topic; the connector's default is `false`",
    ),
    *without_effect("errors.deadletterqueue.topic.replication.factor", "the dead-letter topic must exist"),
    *without_effect(
        "errors.log.enable errors.log.include.messages", "dropped records are always logged, without values"
    ),
    *without_effect("errors.retry.timeout errors.retry.delay.max.ms", "converters have nothing to try again"),
    *without_effect("name", "the name of the connector: `metadata.name` and `kafka.groupId`"),
    *without_effect("connector.class connector.plugin.version", "the class of the connector, and its version"),
    *without_effect("key.converter.plugin.version value.converter.plugin.version", "versions of converters"),
    *without_effect(
        "tasks.max tasks.max.enforce",
        "the number of tasks: `--cores` of `s3sink run`, or `executor.instances` and `executor.cores`",
    ),
    *without_effect("key.converter.*", "keys are not read without `$key` and `format.envelope`"),
    *without_effect("header.converter header.converter.*", "headers are not converted"),
    *without_effect("config.action.reload config.providers config.providers.*", "only workers use it"),
    *without_effect(
        "producer.override.* admin.override.*", "the sink has no producer; its admin client has the consumer's settings"
    ),
    KeyRow(
        "transforms",
        Treatment.IMPOSSIBLE,
        note="Kafka's own for values in JSON and with schemas: [`transforms`](#transforms); RegexRouter alone: "
        "`s3.prefixes`, if possible; others: transform before Kafka, or after reading from S3",
    ),
    *without_effect("transforms.* predicates predicates.*", "belongs to `transforms`"),
    # What objects contain
    field("format.class", "format.output", ValueForm.CLASS),
    field("s3.compression.type", "format.compression.codec", ValueForm.CHOICE),
    field("avro.codec", "format.compression.codec", ValueForm.CHOICE),
    field("parquet.codec", "format.compression.codec", ValueForm.CHOICE),
    field("s3.compression.level", "format.compression.level", ValueForm.SPECIAL),
    field("format.bytearray.separator", "format.bytes.separator", ValueForm.SPECIAL),
    field("format.bytearray.extension", "format.bytes.extension", ValueForm.TEXT),
    field("json.decimal.format", "format.decimals", ValueForm.CHOICE),
    field("connect.meta.data", "format.avro.connectNames", ValueForm.SPECIAL, "the connector's default is true"),
    field("schema.compatibility", "schemaCompatibility", ValueForm.CHOICE),
    field("behavior.on.null.values", "errors.onNullValue", ValueForm.CHOICE),
    *different("enhanced.avro.schema.support", "Avro and Parquet are written as with `true`", default="true"),
    *different("scrub.invalid.names", "Avro is written as with `true`, Parquet as with `false`", default="false"),
    *different(
        "allow.optional.map.keys generalized.sum.type.support flatten.unions discard.type.doc.default "
        "ignore.default.for.nullables",
        "always the default",
        default="false",
    ),
    *different("flatten.singleton.unions", "always the default", default="true"),
    *different(
        "store.kafka.keys store.kafka.headers",
        _KEYS_AND_HEADERS,
        default="false",
        link="([Keys and headers](#keys-and-headers))",
    ),
    *without_effect("keys.format.class headers.format.class", "only with `store.kafka.keys` and `store.kafka.headers`"),
    field(
        "tombstone.encoded.partition",
        "errors.tombstonePath",
        ValueForm.SPECIAL,
        "only with `behavior.on.null.values=write`; the connector's default is `tombstone`",
    ),
    field(
        "report.null.values.to.dlq",
        "errors.deadLetters.nullValues",
        ValueForm.SPECIAL,
        "only with a dead-letter topic and `behavior.on.null.values=ignore`; the connector's default is `true`",
    ),
    *without_effect("schema.cache.size", "schemas are kept in the ledger and in the processes"),
    # Paths
    field("partitioner.class", "partitioner.type", ValueForm.CLASS),
    field("partition.field.name", "partitioner.fields", ValueForm.LIST),
    field("partition.duration.ms", "partitioner.duration", ValueForm.DURATION),
    field("path.format", "partitioner.pathFormat", ValueForm.SPECIAL),
    field("timezone", "partitioner.timezone", ValueForm.SPECIAL),
    field(
        "locale",
        "partitioner.locale",
        ValueForm.SPECIAL,
        "the connector takes the whole text as a language: with `en-US` or `de_DE` its names are the short English "
        "ones (`MMMM` is `Nov`). Names of some languages and of time zones differ, which `convert` reports",
    ),
    field("timestamp.extractor", "partitioner.timestampExtractor", ValueForm.CLASS),
    field("timestamp.field", "partitioner.timestampField", ValueForm.SPECIAL),
    field("s3.schema.partition.affix.type", "partitioner.schemaName", ValueForm.CHOICE),
    # Rotation
    field("flush.size", "rotation.flushSize", ValueForm.NUMBER),
    field("rotate.interval.ms", "rotation.interval", ValueForm.DURATION),
    field("rotate.schedule.interval.ms", "rotation.scheduleInterval", ValueForm.DURATION),
    field("rotate.file.on.partition.change", "rotation.onPathChange", ValueForm.BOOLEAN),
    field("partitioner.max.open.files", "rotation.maxOpenObjects", ValueForm.OPTIONAL_NUMBER),
    *without_effect("max.write.duration.ms", "a round is recorded as a whole; it needs no limit"),
    *without_effect("shutdown.timeout.ms", "open objects survive a stop"),
    # Keys of objects, and S3
    field("topics.dir", "s3.topicsDir", ValueForm.SPECIAL),
    field("directory.delim", "s3.directoryDelimiter", ValueForm.TEXT),
    field("file.delim", "s3.fileDelimiter", ValueForm.TEXT),
    field("filename.offset.zero.pad.width", "s3.offsetPadWidth", ValueForm.NUMBER),
    field("s3.part.size", "s3.partSize", ValueForm.SIZE),
    field("s3.bucket.name", "s3.bucket", ValueForm.TEXT),
    field("s3.region", "s3.region", ValueForm.TEXT, "the connector's default is `us-west-2`"),
    field("store.url", "s3.endpoint", ValueForm.SPECIAL, "`http://` beyond loopback also needs `insecure: true`"),
    field("s3.path.style.access.enabled", "s3.pathStyle", ValueForm.BOOLEAN, "the connector's default is true"),
    field("aws.access.key.id", "s3.credentials", ValueForm.SECRET, "names a secret; without it AWS's default chain"),
    field(
        "aws.secret.access.key", "s3.credentials", ValueForm.SECRET, "names a secret; without it AWS's default chain"
    ),
    *without_effect("storage.class", "always S3"),
    *without_effect(
        "enable.conditional.writes enable.conditional.writes.*", "every object is completed with a conditional write"
    ),
    *without_effect("max.files.scan.limit", "a conflict with an object stops the sink; no names are tried"),
    *without_effect("s3.send.digest", "every part has a CRC64NVME checksum"),
    *without_effect("s3.part.retries s3.retry.backoff.ms retry.backoff.ms", _RETRIES),
    *without_effect("s3.elastic.buffer.enable s3.elastic.buffer.init.capacity", "memory is bounded"),
    *without_effect("s3.http.send.expect.continue", "no effect on objects"),
    field("s3.object.tagging", "s3.offsetTags", ValueForm.BOOLEAN, _TAGS),
    field("s3.object.tagging.key.value.pairs", "s3.tags", ValueForm.SPECIAL, "only with `s3.object.tagging=true`"),
    field(
        "s3.object.behavior.on.tagging.error", "s3.onTagError", ValueForm.CHOICE, "only with `s3.object.tagging=true`"
    ),
    field("s3.acl.canned", "s3.acl", ValueForm.CHOICE),
    field("s3.ssea.name", "s3.encryption.type", ValueForm.CHOICE),
    field("s3.sse.kms.key.id", "s3.encryption.kmsKey", ValueForm.SPECIAL, "with `s3.ssea.name=aws:kms`"),
    field(
        "s3.sse.customer.key",
        "s3.encryption.customerKey",
        ValueForm.SECRET,
        "names a secret; with `s3.ssea.name=AES256`, and the type is `Customer`",
    ),
    field("s3.wan.mode", "s3.accelerate", ValueForm.BOOLEAN),
    field("s3.proxy.url", "s3.proxy.url", ValueForm.SECRET, "if it is the store itself, write `s3.endpoint` instead"),
    field("s3.proxy.user", "s3.proxy.credentials", ValueForm.SECRET, _PROXY),
    field("s3.proxy.password", "s3.proxy.credentials", ValueForm.SECRET, _PROXY),
    field(
        "s3.credentials.provider.class",
        "s3.credentials",
        ValueForm.SPECIAL,
        "left out: AWS's default chain has environment, web identity, profile and instance role",
    ),
    field("s3.credentials.provider.sts.role.*", "s3.assumeRole", ValueForm.SPECIAL, _ROLE),
    *without_effect("s3.credentials.provider.sts.region", "the role is assumed in `s3.region`"),
    *different("s3.credentials.provider.*", "the settings of a provider of credentials", secret=True),
    # Of converters and workers, where they have no effect
    *without_effect(
        "internal.key.converter internal.key.converter.* internal.value.converter internal.value.converter.*",
        "only workers used it, before Kafka 3",
    ),
    *without_effect("exactly.once.support transaction.boundary", "only source connectors use it"),
    KeyRow(
        "bootstrap.servers",
        Treatment.NO_EFFECT,
        note="the brokers are those of the worker; with `convert` they are taken if the worker is unknown",
    ),
    KeyRow("schema.registry.*", Treatment.NO_EFFECT, form=ValueForm.SECRET, note=_ONLY_CONVERTERS),
    KeyRow("basic.auth.*", Treatment.NO_EFFECT, form=ValueForm.SECRET, note=_ONLY_CONVERTERS),
    # Of other editions and older releases
    KeyRow("confluent.license", Treatment.NO_EFFECT, form=ValueForm.SECRET, note=_OF_PLATFORM),
    *without_effect("confluent.topic.* reporter.*", _OF_PLATFORM),
    *without_effect(
        "schema.generator.class hive.integration hive.metastore.uris hive.conf.dir hive.home hive.database", _HIVE
    ),
)
