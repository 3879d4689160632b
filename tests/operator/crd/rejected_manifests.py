"""Manifests that the API server itself has to reject: one for each rule of the CRD, with what its sentence says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from sink_job.api.rules.reserved_properties import KAFKA_OWNED, SPARK_OWNED, SPARK_OWNED_PREFIXES
from tests.operator.crd.rejected_transforms import rejected_transforms
from tests.unit.api.manifests import ABSENT, HOURLY, TIME, document

Changes = dict[str, object]

_NO_END: Final[Changes] = {"spec.rotation": {"maxOpenTime": "5m"}}
_RESET: Final[Changes] = {"spec.offsets.reset": {"nonce": "1", "to": "Earliest"}}
_FIELD: Final[Changes] = {"spec.partitioner": {"type": "Field", "fields": ["a"]}}
_COMPRESSION: Final = "spec.format.compression.codec is no codec of output {}: use {}"
_LEVEL: Final = "spec.format.compression.level is not allowed: 0 to 3 for Gzip and Deflate, 1 to 19 for Zstd"
_ROLE: Final = "arn:aws:iam::123456789012:role/a"
_ONE: Final = [{"topic": "a", "partition": 0, "offset": 7}]


def _secret(name: str) -> Changes:
    return {"spec.kafka.propertySecrets": [{"name": name, "secret": "login", "key": "value"}]}


def _login(kind: str, **more: object) -> Changes:
    return {"spec.kafka.login": {"type": kind, "credentials": {"secret": "login"}, **more}}


def _row_group(size: str) -> Changes:
    return {"spec.format": {"converter": "ConnectJson", "output": "Parquet", "parquet": {"rowGroup": size}}}


def _block(size: str) -> Changes:
    return {"spec.format": {"converter": "ConnectJson", "output": "Avro", "avro": {"block": size}}}


def _role(**fields: str) -> dict[str, str]:
    return {"arn": "arn:aws:iam::123456789012:role/archive", **fields}


def _sessions() -> Iterator[tuple[str, list[Changes], str]]:
    """Sessions of the roles for S3 and for AWS Glue."""
    glue = {"type": "Glue", "region": "eu-central-1"}
    for duration, said in (("14m", "is below"), ("13h", "is above"), ("1", "is not a duration")):
        role = _role(duration=duration)
        yield f"a session of {duration}", [{"spec.s3.assumeRole": role}], f"spec.s3.assumeRole.duration {said}"
        of_glue = {"converter": "Avro", "registry": {**glue, "assumeRole": role}}
        message = f"spec.format.registry.assumeRole.duration {said}"
        yield f"a session of {duration} for AWS Glue", [{"spec.format": of_glue}], message
        catalog = {**glue, "warehouse": "s3://lake/tables", "assumeRole": role}
        table: Changes = {"spec.tables": [{"name": "lake.{topic}", "catalog": catalog}]}
        message = f"spec.tables[].catalog.assumeRole.duration {said}"
        yield f"a session of {duration} for a catalog", [_parquet(table)], message


def _exclusive() -> Iterator[tuple[str, list[Changes], str]]:
    """Fields that exclude each other."""
    pairs: list[tuple[str, str, object]] = [
        ("accelerate", "endpoint", "https://store"),
        ("accelerate", "pathStyle", True),
        ("dualStack", "endpoint", "https://store"),
        ("anonymous", "credentials", {"secret": "keys"}),
        ("anonymous", "assumeRole", _role()),
    ]
    for name, other, value in pairs:
        changes: Changes = {f"spec.s3.{name}": True, f"spec.s3.{other}": value}
        yield f"{name} with {other}", [changes], f"spec.s3.{name} cannot be combined with {other}"


def _table(**given: str) -> Changes:
    """A table with these fields."""
    catalog = {"type": "Rest", "uri": "https://catalog.example.com"}
    return _parquet({"spec.tables": [{"catalog": catalog, "name": "lake.{topic}", **given}]})


def _parquet(changes: Changes) -> Changes:
    return {"spec.format": {"converter": "ConnectJson", "output": "Parquet"}, **changes}


_WRITTEN: Final[list[tuple[str, list[Changes], str]]] = [
    ("a name of 41 characters", [{"metadata.name": "a" * 41}], "metadata.name is longer than 40 characters"),
    ("a name with a dot", [{"metadata.name": "a.b"}], "metadata.name has a dot"),
    ("brokers without a port", [{"spec.kafka.bootstrapServers": "kafka"}], "bootstrapServers is not a list of brokers"),
    ("no topic", [{"spec.kafka.topics": ABSENT}], "spec.kafka has no topics"),
    ("topics and a pattern", [{"spec.kafka.topicsPattern": ".*"}], "topicsPattern cannot be combined with topics"),
    ("the topic of the ledgers", [{"spec.kafka.topics": ["_s3sink"]}], "spec.kafka.topics contains . or .."),
    (
        "a property with a prefix",
        [{"spec.kafka.properties": {"kafka.client.id": "a"}}],
        "spec.kafka.properties has a property with the prefix",
    ),
    ("a secret for what the sink sets", [_secret("group.id")], "spec.kafka.propertySecrets has a property that cannot"),
    (
        "a property in both places",
        [_secret("client.rack"), {"spec.kafka.properties": {"client.rack": "a"}}],
        "spec.kafka.propertySecrets has a property that is also in",
    ),
    (
        "a password among the properties",
        [{"spec.kafka.properties": {"ssl.key.password": "a"}}],
        "spec.kafka.properties has a password",
    ),
    (
        "a login with a password",
        [{"spec.kafka.properties": {"sasl.jaas.config": 'X required password="a";'}}],
        "sasl.jaas.config with a password is not allowed here",
    ),
    (
        "a login without a password",
        [{"spec.kafka.login": {"type": "Plain"}}],
        "spec.kafka.login.credentials is missing",
    ),
    ("a user beside a certificate", [_login("Certificate", username="a")], "spec.kafka.login.username has no effect"),
    (
        "tokens without a URL",
        [_login("OAuth")],
        "spec.kafka.login.tokenUrl is missing: this type needs it",
    ),
    ("a client of a certificate", [_login("Certificate", clientId="a")], "spec.kafka.login.clientId has no effect"),
    (
        "a URL of a certificate",
        [_login("Certificate", tokenUrl="https://a")],
        "spec.kafka.login.tokenUrl has no effect",
    ),
    ("a scope of a certificate", [_login("Certificate", scope="a")], "spec.kafka.login.scope has no effect"),
    (
        "authorities of tokens of a certificate",
        [_login("Certificate", tokenCaSecret={"secret": "ca", "key": "ca.crt"})],
        "spec.kafka.login.tokenCaSecret has no effect",
    ),
    (
        "a property beside tokens",
        [_login("OAuth", tokenUrl="https://a"), {"spec.kafka.properties": {"sasl.mechanism": "OAUTHBEARER"}}],
        "spec.kafka.properties has a property that spec.kafka.login sets, one of sasl.oauthbearer",
    ),
    (
        "a secret beside tokens",
        [_login("OAuth", tokenUrl="https://a"), _secret("sasl.jaas.config")],
        "spec.kafka.propertySecrets has a property that spec.kafka.login sets, one of sasl.oauthbearer",
    ),
    ("a Secret of IAM", [_login("MskIam")], "spec.kafka.login.credentials has no effect"),
    ("a profile of a certificate", [_login("Certificate", profile="a")], "spec.kafka.login.profile has no effect"),
    (
        "a role of a certificate",
        [_login("Certificate", assumeRole={"arn": _ROLE})],
        "spec.kafka.login.assumeRole has no effect",
    ),
    (
        "a role and a profile",
        [{"spec.kafka.login": {"type": "MskIam", "assumeRole": {"arn": _ROLE}, "profile": "a"}}],
        "spec.kafka.login.profile cannot be combined with assumeRole",
    ),
    (
        "a property beside IAM",
        [{"spec.kafka.login": {"type": "MskIam"}, "spec.kafka.properties": {"sasl.mechanism": "AWS_MSK_IAM"}}],
        "spec.kafka.properties has a property that spec.kafka.login sets, one of sasl.client",
    ),
    (
        "a secret beside IAM",
        [{"spec.kafka.login": {"type": "MskIam"}}, _secret("sasl.jaas.config")],
        "spec.kafka.propertySecrets has a property that spec.kafka.login sets, one of sasl.client",
    ),
    ("a certificate without TLS", [_login("Certificate", insecure=True)], "spec.kafka.login.insecure has no effect"),
    (
        "authorities without TLS",
        [_login("Plain", insecure=True, caSecret={"secret": "ca", "key": "ca.crt"})],
        "spec.kafka.login.caSecret has no effect with insecure",
    ),
    (
        "a property beside a login with a password",
        [_login("Plain"), {"spec.kafka.properties": {"sasl.mechanism": "PLAIN"}}],
        "spec.kafka.properties has a property that spec.kafka.login sets, one of sasl.jaas.config",
    ),
    (
        "a secret beside a login with a password",
        [_login("Scram512"), _secret("sasl.jaas.config")],
        "spec.kafka.propertySecrets has a property that spec.kafka.login sets, one of sasl.jaas.config",
    ),
    (
        "a property beside a certificate",
        [_login("Certificate"), {"spec.kafka.properties": {"ssl.keystore.location": "a"}}],
        "spec.kafka.properties has a property that spec.kafka.login sets, one of security.protocol",
    ),
    (
        "a secret beside a certificate",
        [_login("Certificate"), _secret("ssl.keystore.key")],
        "spec.kafka.propertySecrets has a property that spec.kafka.login sets, one of security.protocol",
    ),
    (
        "a property beside authorities",
        [
            _login("Plain", caSecret={"secret": "ca", "key": "ca.crt"}),
            {"spec.kafka.properties": {"ssl.truststore.type": "PEM"}},
        ],
        "spec.kafka.properties has a property that spec.kafka.login sets, one of ssl.truststore",
    ),
    (
        "a secret beside authorities",
        [_login("Plain", caSecret={"secret": "ca", "key": "ca.crt"}), _secret("ssl.truststore.certificates")],
        "spec.kafka.propertySecrets has a property that spec.kafka.login sets, one of ssl.truststore",
    ),
    (
        "a secret for Spark",
        [{"spec.sparkConf": {"spark.hadoop.fs.s3a.secret.key": "a"}}],
        "spec.sparkConf has a password",
    ),
    (
        "a field twice",
        [{"spec.partitioner": {"type": "Field", "fields": ["a", "a"]}}],
        "spec.partitioner.fields has a duplicate field",
    ),
    (
        "a field with an empty segment",
        [{"spec.partitioner": {"type": "Field", "fields": ["a..b"]}}],
        "spec.partitioner.fields has an empty segment",
    ),
    (
        "a name with $ that is no field",
        [{"spec.partitioner": {"type": "Field", "fields": ["$headers.tenant"]}}],
        "spec.partitioner.fields has a name with $",
    ),
    (
        "a time in a name with $ that is no field",
        [{"spec.partitioner.timestampField": "$header"}],
        "spec.partitioner.timestampField has a name with $",
    ),
    (
        "a compression that Json lacks",
        [{"spec.format.compression": {"codec": "Snappy"}}],
        _COMPRESSION.format("Json or Bytes", "None"),
    ),
    (
        "a compression that Bytes lacks",
        [{"spec.format": {"output": "Bytes", "compression": {"codec": "Lz4"}}}],
        _COMPRESSION.format("Json or Bytes", "None"),
    ),
    (
        "a compression that Avro lacks",
        [{"spec.format": {"output": "Avro", "compression": {"codec": "Gzip"}}}],
        _COMPRESSION.format("Avro", "None, Deflate, Snappy, Zstd, Bzip2"),
    ),
    (
        "a compression that Parquet lacks",
        [{"spec.format": {"output": "Parquet", "compression": {"codec": "Deflate"}}}],
        _COMPRESSION.format("Parquet", "Snappy, None, Gzip, Zstd, Lz4, Brotli"),
    ),
    ("an interval without a unit", [_table(every="5")], "spec.tables[].every is not a duration"),
    ("an interval of nothing", [_table(every="5ms")], "spec.tables[].every is below the minimum of 1s"),
    ("an interval of two days", [_table(every="2d")], "spec.tables[].every is above the maximum of 1d"),
    ("a history without a unit", [_table(history="5")], "spec.tables[].history is not a duration"),
    ("a history of minutes", [_table(history="5m")], "spec.tables[].history is below the minimum of 1h"),
    (
        "a unit of times without Parquet",
        [{"spec.format.parquet.timeUnit": "AsSchema"}],
        "spec.format.parquet has no effect without the output Parquet",
    ),
    (
        "a block without Avro",
        [{"spec.format.avro.block": "1Mi"}],
        "spec.format.avro has no effect without the output Avro",
    ),
    (
        "a separator without Bytes",
        [{"spec.format.bytes.separator": ""}],
        "spec.format.bytes has no effect without the output Bytes",
    ),
    (
        "a level of a codec without levels",
        [{"spec.format.compression": {"codec": "None", "level": 1}}],
        _LEVEL,
    ),
    (
        "a level that Gzip lacks",
        [{"spec.format.compression": {"codec": "Gzip", "level": 9}}],
        _LEVEL,
    ),
    (
        "a level that Zstd lacks",
        [{"spec.format.compression": {"codec": "Zstd", "level": 0}}],
        _LEVEL,
    ),
    (
        "a level of Gzip in Parquet",
        [
            {
                "spec.format": {
                    "converter": "ConnectJson",
                    "output": "Parquet",
                    "compression": {"codec": "Gzip", "level": 1},
                }
            }
        ],
        "spec.format.compression.level has no effect: Gzip in Parquet has no levels",
    ),
    (
        "a Bloom filter twice",
        [{"spec.format": {"converter": "ConnectJson", "output": "Parquet", "parquet": {"bloomFilters": ["a", "a"]}}}],
        "spec.format.parquet.bloomFilters has a duplicate field",
    ),
    (
        "a Bloom filter with an empty segment",
        [{"spec.format": {"converter": "ConnectJson", "output": "Parquet", "parquet": {"bloomFilters": ["a..b"]}}}],
        "spec.format.parquet.bloomFilters has an empty segment",
    ),
    ("Field without fields", [{"spec.partitioner": {"type": "Field"}}], "spec.partitioner.fields is missing"),
    ("fields without Field", [HOURLY, {"spec.partitioner.fields": ["a"]}], "spec.partitioner.fields has no effect"),
    ("Time without duration", [TIME, {"spec.partitioner.duration": ABSENT}], "spec.partitioner.duration is missing"),
    ("Time without a path", [TIME, {"spec.partitioner.pathFormat": ABSENT}], "spec.partitioner.pathFormat is missing"),
    ("a duration without a time", [_FIELD, {"spec.partitioner.duration": "1h"}], "partitioner.duration has no effect"),
    ("a path without a time", [_FIELD, {"spec.partitioner.pathFormat": "HH"}], "partitioner.pathFormat has no effect"),
    (
        "time paths without a zone",
        [HOURLY, {"spec.partitioner.timezone": ABSENT}],
        "spec.partitioner.timezone is missing: a type with time",
    ),
    ("two hours for Hourly", [HOURLY, {"spec.partitioner.duration": "2h"}], "duration is not allowed: the type Hourly"),
    (
        "two days for Daily",
        [{"spec.partitioner": {"type": "Daily", "timezone": "UTC", "duration": "2d"}}],
        "duration is not allowed: the type Daily",
    ),
    (
        "a path of its own for Hourly",
        [HOURLY, {"spec.partitioner.pathFormat": "HH"}],
        "pathFormat is not allowed: the type Hourly",
    ),
    (
        "a path of its own for Daily",
        [{"spec.partitioner": {"type": "Daily", "timezone": "UTC", "pathFormat": "dd"}}],
        "pathFormat is not allowed: the type Daily",
    ),
    ("fields of plain text", [_FIELD, {"spec.format.converter": "Text"}], "spec.partitioner.type requires fields"),
    (
        "the time in a field of plain bytes",
        [HOURLY, {"spec.partitioner.timestampExtractor": "RecordField", "spec.format.converter": "Bytes"}],
        "spec.partitioner.timestampExtractor RecordField requires fields",
    ),
    ("nothing that ends objects", [_NO_END], "spec.rotation: no setting closes objects"),
    ("an interval without a time", [{"spec.rotation.interval": "10m"}], "spec.rotation.interval has no effect"),
    (
        "a schedule without a zone",
        [{"spec.rotation.scheduleInterval": "1h"}],
        "spec.partitioner.timezone is missing: spec.rotation.scheduleInterval",
    ),
    (
        "an object of more parts than S3 takes",
        [{"spec.rotation.maxBytes": "60Gi", "spec.s3.partSize": "5Mi"}],
        "spec.rotation.maxBytes exceeds",
    ),
    ("a bucket with two dots in a row", [{"spec.s3.bucket": "a..b"}], "spec.s3.bucket has two consecutive dots"),
    ("a folder with an empty element", [{"spec.s3.topicsDir": "a//b"}], "spec.s3.topicsDir has an element"),
    (
        "a folder that ends in the delimiter",
        [{"spec.s3.topicsDir": "lake-", "spec.s3.directoryDelimiter": "-"}],
        "spec.s3.topicsDir begins or ends",
    ),
    (
        "dead letters without tolerance",
        [{"spec.errors": {"deadLetters": {"prefix": "rejected"}}}],
        "spec.errors.deadLetters.prefix has no effect",
    ),
    (
        "a dead-letter topic without tolerance",
        [{"spec.errors": {"deadLetters": {"topic": "rejected"}}}],
        "spec.errors.deadLetters.topic has no effect",
    ),
    (
        "a dead-letter topic that the sink reads",
        [{"spec.errors": {"tolerance": "All", "deadLetters": {"topic": "flights"}}}],
        "spec.errors.deadLetters.topic is also in spec.kafka.topics",
    ),
    (
        "headers without a dead-letter topic",
        [{"spec.errors": {"tolerance": "All", "deadLetters": {"headers": False}}}],
        "spec.errors.deadLetters.headers has no effect",
    ),
    (
        "null values without dead letters",
        [{"spec.errors": {"tolerance": "All", "onNullValue": "Ignore", "deadLetters": {"nullValues": True}}}],
        "spec.errors.deadLetters.nullValues has no effect without spec.errors.deadLetters.topic or prefix",
    ),
    (
        "null values that are not ignored",
        [{"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected", "nullValues": True}}}],
        "spec.errors.deadLetters.nullValues has no effect without spec.errors.onNullValue: Ignore",
    ),
    (
        "null values that are written without an envelope",
        [{"spec.errors": {"onNullValue": "Write"}}],
        "spec.errors.onNullValue: Write needs spec.format.envelope",
    ),
    (
        "a path of tombstones that are not written",
        [{"spec.errors": {"tombstonePath": "gone"}}],
        "spec.errors.tombstonePath has no effect without spec.errors.onNullValue: Write",
    ),
    (
        "a path of tombstones that is no directory",
        [
            {"spec.errors": {"onNullValue": "Write", "tombstonePath": path}, "spec.format": {"envelope": True}}
            for path in ("a//b", "../a", "_s3sink")
        ],
        "spec.errors.tombstonePath has an element that is empty, . or .., or _s3sink",
    ),
    (
        "a path of tombstones that ends with the delimiter",
        [
            {
                "spec.errors": {"onNullValue": "Write", "tombstonePath": "gone-"},
                "spec.format": {"envelope": True},
                "spec.s3.directoryDelimiter": "-",
            }
        ],
        "spec.errors.tombstonePath begins or ends with spec.s3.directoryDelimiter",
    ),
    (
        "null values beside keys with schemas",
        [
            {
                "spec.errors": {"onNullValue": "Write"},
                "spec.format": {
                    "converter": "Avro",
                    "keyConverter": "Avro",
                    "output": output,
                    "envelope": True,
                    "registry": {"url": ["https://registry.example.com"]},
                },
            }
            for output in ("Avro", "Parquet")
        ],
        "spec.schemaCompatibility: None cannot be used with spec.errors.onNullValue: Write",
    ),
    (
        "dead letters among the objects",
        [{"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "a/b"}}, "spec.s3.topicsDir": "a/b"}],
        "spec.errors.deadLetters.prefix and spec.s3.topicsDir must not contain each other",
    ),
    (
        "dead letters below the objects",
        [{"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "a/b/c"}}, "spec.s3.topicsDir": "a/b"}],
        "spec.errors.deadLetters.prefix and spec.s3.topicsDir must not contain each other",
    ),
    (
        "dead letters above the objects",
        [{"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "a"}}, "spec.s3.topicsDir": "a/b"}],
        "spec.errors.deadLetters.prefix and spec.s3.topicsDir must not contain each other",
    ),
    (
        "dead letters in the folder of ledgers",
        [{"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "topics/_s3sink"}}}],
        "spec.errors.deadLetters.prefix has an element",
    ),
    (
        "dead letters that end in the delimiter",
        [
            {
                "spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected-"}},
                "spec.s3.directoryDelimiter": "-",
            }
        ],
        "spec.errors.deadLetters.prefix begins or ends",
    ),
    (
        "dead letters among the objects of a topic",
        [
            {
                "spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "flights/rejected"}},
                "spec.s3.topicsDir": "",
            }
        ],
        "spec.errors.deadLetters.prefix begins with a topic",
    ),
    *_sessions(),
    *_exclusive(),
    (
        "acceleration of a bucket with a dot",
        [{"spec.s3.accelerate": True, "spec.s3.bucket": "a.b"}],
        "spec.s3.accelerate is not possible",
    ),
    ("retries for two hours", [{"spec.s3.retryFor": "2h"}], "spec.s3.retryFor is above"),
    ("an expiry after hours", [{"spec.s3.expireAfter": "12h"}], "spec.s3.expireAfter is below"),
    ("an expiry without a unit", [{"spec.s3.expireAfter": "400"}], "spec.s3.expireAfter is not a duration"),
    ("retries without a unit", [{"spec.s3.retryFor": "5"}], "spec.s3.retryFor is not a duration"),
    (
        "a key of KMS without KMS",
        [{"spec.s3.encryption": {"type": "Aes256", "kmsKey": "a"}}],
        "spec.s3.encryption.kmsKey has no effect",
    ),
    (
        "a key of the bucket without KMS",
        [{"spec.s3.encryption": {"type": "KmsDsse", "bucketKey": True}}],
        "spec.s3.encryption.bucketKey has no effect",
    ),
    ("a tag of AWS", [{"spec.s3.tags": {"aws:team": "a"}}], "spec.s3.tags has a key that is no key of a tag"),
    (
        "eight tags beside those with offsets",
        [{"spec.s3.offsetTags": True, "spec.s3.tags": {f"k{n}": "" for n in range(8)}}],
        "spec.s3.tags has more than 7 tags",
    ),
    (
        "a tag with an offset of one's own",
        [{"spec.s3.offsetTags": True, "spec.s3.tags": {"endOffset": "1"}}],
        "spec.s3.tags has a tag of offsetTags",
    ),
    ("errors of tags that no object has", [{"spec.s3.onTagError": "Fail"}], "spec.s3.onTagError has no effect"),
    (
        "a customer's key with KMS",
        [{"spec.s3.encryption": {"type": "Kms", "customerKey": {"secret": "a", "key": "b"}}}],
        "spec.s3.encryption.customerKey has no effect",
    ),
    (
        "customers without a key",
        [{"spec.s3.encryption": {"type": "Customer"}}],
        "spec.s3.encryption.customerKey is missing",
    ),
    (
        "a customer's key without TLS",
        [
            {
                "spec.s3.encryption": {"type": "Customer", "customerKey": {"secret": "a", "key": "b"}},
                "spec.s3.endpoint": "http://store:9000",
                "spec.s3.insecure": True,
            }
        ],
        "spec.s3.encryption.type is not possible",
    ),
    (
        "a customer's previous key without TLS",
        [
            {
                "spec.s3.encryption": {"type": "Kms", "previousKeys": [{"secret": "a", "key": "b"}]},
                "spec.s3.endpoint": "http://store:9000",
                "spec.s3.insecure": True,
            }
        ],
        "spec.s3.encryption.type is not possible with an endpoint without TLS",
    ),
    (
        "a lock for a time without a unit",
        [{"spec.s3.objectLock": {"mode": "Governance", "retain": "30"}}],
        "spec.s3.objectLock.retain is not a duration",
    ),
    ("a lock without a time", [{"spec.s3.objectLock": {"mode": "Governance"}}], "spec.s3.objectLock has mode without"),
    ("a lock of nothing", [{"spec.s3.objectLock": {"legalHold": False}}], "spec.s3.objectLock locks nothing"),
    (
        "a lock of an hour",
        [{"spec.s3.objectLock": {"mode": "Governance", "retain": "1h"}}],
        "spec.s3.objectLock.retain is below",
    ),
    (
        "a ledger without a directory in the objects' bucket",
        [{"spec.s3.ledger": {"bucket": "archive"}}],
        "spec.s3.ledger.prefix is missing",
    ),
    (
        "a ledger below the objects",
        [{"spec.s3.ledger": {"bucket": "archive", "prefix": "topics/ledgers"}}],
        "spec.s3.ledger.prefix and spec.s3.topicsDir must not contain each other",
    ),
    (
        "a ledger among all objects",
        [{"spec.s3.ledger": {"bucket": "archive", "prefix": "a"}, "spec.s3.topicsDir": ""}],
        "spec.s3.ledger.prefix and spec.s3.topicsDir must not contain each other",
    ),
    (
        "a ledger among dead letters",
        [
            {
                "spec.s3.ledger": {"bucket": "archive", "prefix": "rejected/a"},
                "spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected"}},
            }
        ],
        "spec.errors.deadLetters.prefix and spec.s3.ledger.prefix must not contain each other",
    ),
    (
        "a ledger whose keys would be too long",
        [{"spec.s3.ledger": {"bucket": "other", "prefix": "a" * 250}, "spec.s3.topicsDir": "b" * 260}],
        "spec.s3.ledger has a prefix and a bucket that are too long",
    ),
    ("a proxy without a port", [{"spec.s3.proxy": {"url": "http://proxy"}}], "spec.s3.proxy.url is not the URL"),
    ("a proxy with a login", [{"spec.s3.proxy": {"url": "http://u:p@proxy:1"}}], "spec.s3.proxy.url is not the URL"),
    ("a store without TLS", [{"spec.s3.endpoint": "http://store:9000"}], "spec.s3.endpoint is not encrypted"),
    (
        "a store that only looks local",
        [{"spec.s3.endpoint": "http://localhost.example.com"}],
        "spec.s3.endpoint is not encrypted",
    ),
    ("a percent sign in names", [{"spec.s3.fileDelimiter": "%"}], "spec.s3.fileDelimiter has a %"),
    ("a percent sign in paths", [{"spec.s3.directoryDelimiter": "%"}], "spec.s3.directoryDelimiter has a %"),
    ("ledgers in paths", [{"spec.s3.directoryDelimiter": "/_s3sink/"}], "spec.s3.directoryDelimiter has _s3sink"),
    ("a digit between numbers", [{"spec.s3.fileDelimiter": "0"}], "spec.s3.fileDelimiter has a digit"),
    (
        "one delimiter for two things",
        [{"spec.s3.fileDelimiter": "/"}],
        "spec.s3.fileDelimiter and directoryDelimiter are ambiguous",
    ),
    (
        "a prefix of no topic",
        [
            {"spec.s3.prefixes": [{"prefix": "a"}]},
            {"spec.s3.prefixes": [{"topic": "t", "pattern": "t", "prefix": "a"}]},
        ],
        "spec.s3.prefixes has an entry with both or none of topic and pattern",
    ),
    (
        "a prefix in the folder of ledgers",
        [{"spec.s3.prefixes": [{"pattern": ".*", "prefix": prefix}]} for prefix in ("_s3sink", "a/_s3sink/b", "a//b")],
        "spec.s3.prefixes has a prefix with an element",
    ),
    (
        "a prefix that ends in the delimiter",
        [{"spec.s3.prefixes": [{"pattern": ".*", "prefix": "a|"}], "spec.s3.directoryDelimiter": "|"}],
        "spec.s3.prefixes has a prefix that begins or ends with directoryDelimiter",
    ),
    (
        "keys of two topics that could be equal",
        [
            {"spec.s3.topicInPath": False, "spec.s3.directoryDelimiter": "-"},
            {"spec.s3.prefixes": [{"pattern": ".*", "prefix": "a"}], "spec.s3.directoryDelimiter": "--"},
        ],
        "spec.s3.directoryDelimiter may be a part of a topic",
    ),
    (
        "objects that could be below dead letters",
        [
            {
                "spec.s3.topicInPath": False,
                "spec.s3.topicsDir": "",
                "spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected"}},
            }
        ],
        "spec.s3.topicsDir is empty, so with prefixes or topicInPath: false",
    ),
    ("more to wait for than is read", [{"spec.rounds.minBytes": "1Gi"}], "spec.rounds.minBytes is above"),
    (
        "least memory above most",
        [{"spec.executor.memory": {"min": "2Gi", "max": "1536Mi"}}],
        "spec.executor.memory.min is above",
    ),
    (
        "fewer executors at most than at least",
        [{"spec.executor.scaling": {"minInstances": 3, "maxInstances": 2}}],
        "spec.executor.scaling.minInstances is above",
    ),
    (
        "a number of executors beside one that follows activity",
        [{"spec.executor": {"instances": 3, "scaling": {"mode": "Auto"}}}],
        "spec.executor.instances has no effect with scaling.mode: Auto",
    ),
    (
        "a number of executors that follows activity where there are none",
        [{"spec.executor": {"mode": "Local", "scaling": {"mode": "Auto"}}}],
        "spec.executor.scaling.mode is Auto, which has no effect in Local mode",
    ),
    (
        "annotations of an account that exists",
        [{"spec.serviceAccount": {"name": "writer", "annotations": {"a": "b"}}}],
        "spec.serviceAccount.annotations has no effect with name",
    ),
    ("a ledger by a name that is taken", [{"spec.sinkId": "topics"}], "spec.sinkId contains .."),
    ("a reset to no time", [_RESET, {"spec.offsets.reset.to": "Timestamp"}], "reset.timestamp is missing"),
    ("a reset to no offsets", [_RESET, {"spec.offsets.reset.to": "Offsets"}], "reset.partitions is missing"),
    ("a time without a reset to it", [_RESET, {"spec.offsets.reset.timestamp": 1}], "reset.timestamp has no effect"),
    (
        "offsets without a reset to them",
        [_RESET, {"spec.offsets.reset.partitions": _ONE}],
        "reset.partitions has no effect",
    ),
    (
        "a property that is not Spark's",
        [{"spec.sparkConf": {"zebra": "1"}}],
        "spec.sparkConf has a property that is not",
    ),
    ("a part below S3's minimum", [{"spec.s3.partSize": "4Mi"}], "spec.s3.partSize is below"),
    ("a part of few bytes, as a number", [{"spec.s3.partSize": 4194304}], "spec.s3.partSize is below"),
    (
        "a row group below the minimum",
        [_row_group("512Ki")],
        "spec.format.parquet.rowGroup is below",
    ),
    (
        "a row group above the maximum",
        [_row_group("1Gi")],
        "spec.format.parquet.rowGroup is above",
    ),
    ("an Avro block below the minimum", [_block("512")], "spec.format.avro.block is below"),
    ("an Avro block above the maximum", [_block("65Mi")], "spec.format.avro.block is above"),
    ("a part above the maximum", [{"spec.s3.partSize": "2.5Gi"}], "spec.s3.partSize is above"),
    ("objects of no bytes", [{"spec.rotation.maxBytes": 0}], "spec.rotation.maxBytes is below"),
    ("rounds of no bytes", [{"spec.rounds": {"minBytes": 0, "maxBytes": 0}}], "spec.rounds.maxBytes is below"),
    ("rounds two days apart", [{"spec.rounds.maxDelay": "1d1ms"}], "spec.rounds.maxDelay is above"),
    ("paths of no time", [TIME, {"spec.partitioner.duration": "0s"}], "spec.partitioner.duration is below"),
    ("an interval of no time", [HOURLY, {"spec.rotation.interval": "0h0m"}], "spec.rotation.interval is below"),
    ("a schedule of no time", [HOURLY, {"spec.rotation.scheduleInterval": "0s"}], "rotation.scheduleInterval is below"),
    ("a schedule of 25 hours", [HOURLY, {"spec.rotation.scheduleInterval": "25h"}], "scheduleInterval is above"),
    (
        "a path of one hour in words",
        [TIME, {"spec.partitioner.duration": "1 hour"}],
        "partitioner.duration is not a dura",
    ),
    (
        "an interval without a unit",
        [HOURLY, {"spec.rotation.interval": "600"}],
        "spec.rotation.interval is not a duration",
    ),
    ("a schedule in weeks", [HOURLY, {"spec.rotation.scheduleInterval": "1w"}], "scheduleInterval is not a duration"),
    ("minutes before hours", [{"spec.rotation.maxOpenTime": "30m1h"}], "spec.rotation.maxOpenTime is not a duration"),
    ("a delay without a number", [{"spec.rounds.maxDelay": ""}], "spec.rounds.maxDelay is not a duration"),
    ("objects open for no time", [{"spec.rotation.maxOpenTime": "0s"}], "spec.rotation.maxOpenTime is below"),
    ("little memory at least", [{"spec.executor.memory.min": "256Mi"}], "spec.executor.memory.min is below"),
    (
        "little memory at most",
        [{"spec.executor.memory": {"min": "512Mi", "max": "511Mi"}}],
        "spec.executor.memory.max is below",
    ),
    ("a driver of little memory", [{"spec.driver.memory": "256M"}], "spec.driver.memory is below"),
]


def _owned() -> Iterator[tuple[str, Changes, str]]:
    """For every property that a rule names: what sets it, and the sentence."""
    for path, owned, whose in (
        ("spec.kafka.properties", KAFKA_OWNED, "Kafka's"),
        ("spec.sparkConf", SPARK_OWNED, "Spark's"),
    ):
        for name, why in owned.items():
            others = sorted(other for other in owned if owned[other] == why)
            said = f"{path}: {', '.join(others)} cannot be set here: {why}"
            yield f"{whose} {name}, which the sink or its operator sets", {path: {name: "1"}}, said
    for start, why in SPARK_OWNED_PREFIXES.items():
        said = f"spec.sparkConf: {start}* cannot be set here: {why}"
        yield f"Spark's {start}*, which the sink or its operator sets", {"spec.sparkConf": {f"{start}a": "1"}}, said


REJECTED: Final[list[Any]] = [
    *(pytest.param(document(*changes), said, id=sentence) for sentence, changes, said in _WRITTEN),
    *(pytest.param(document(changes), said, id=sentence) for sentence, changes, said in _owned()),
    *(pytest.param(document(changes), said, id=sentence) for sentence, changes, said in rejected_transforms()),
]
"""A manifest, and what a sentence has that rejects it."""

CHANGED: Final[list[Any]] = [
    pytest.param({}, {"spec": {"s3": {"bucket": "other"}}}, "spec.s3.bucket is immutable", id="another bucket"),
    pytest.param({}, {"spec": {"s3": {"topicsDir": "b"}}}, "spec.s3.topicsDir is immutable", id="another folder"),
    pytest.param(
        {}, {"spec": {"s3": {"ledger": {"bucket": "b-1"}}}}, "spec.s3.ledger is immutable", id="a first place"
    ),
    pytest.param(
        {"spec.s3.ledger": {"bucket": "b-1"}},
        {"spec": {"s3": {"ledger": {"bucket": "b-2"}}}},
        "spec.s3.ledger is immutable",
        id="another place",
    ),
    pytest.param(
        {"spec.s3.ledger": {"bucket": "b-1", "prefix": "a"}},
        {"spec": {"s3": {"ledger": None}}},
        "spec.s3.ledger is immutable",
        id="no other place",
    ),
    pytest.param({}, {"spec": {"kafka": {"groupId": "a"}}}, "spec.kafka.groupId is immutable", id="a first group"),
    pytest.param(
        {"spec.kafka.groupId": "a"},
        {"spec": {"kafka": {"groupId": "b"}}},
        "spec.kafka.groupId is immutable",
        id="another group",
    ),
    pytest.param(
        {"spec.kafka.groupId": "a"},
        {"spec": {"kafka": {"groupId": None}}},
        "spec.kafka.groupId is immutable",
        id="a group taken away",
    ),
    pytest.param({}, {"spec": {"sinkId": "a"}}, "spec.sinkId is immutable", id="a first ledger's name"),
    pytest.param({"spec.sinkId": "a"}, {"spec": {"sinkId": "b"}}, "spec.sinkId is immutable", id="another ledger"),
]
"""Changes to a right manifest, a merge patch to it, and words of the sentence that rejects the patch."""
