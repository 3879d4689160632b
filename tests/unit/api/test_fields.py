"""What a single field may hold, and what the user reads when it holds something else."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.reserved_properties import KAFKA_OWNED
from tests.unit.api.manifests import ABSENT, HOURLY, TIME, accepted, mistakes


def case(sentence: str, changes: dict[str, object], *expected: str) -> Any:
    return pytest.param(changes, list(expected), id=sentence)


WRONG = [
    case(
        "a part size below S3's minimum is refused",
        {"spec.s3.partSize": "4Mi"},
        "spec.s3.partSize: 4Mi is below S3's minimum of 5Mi",
    ),
    case(
        "a part size above 2Gi is refused",
        {"spec.s3.partSize": "3Gi"},
        "spec.s3.partSize: 3Gi is above S3's maximum of 2Gi",
    ),
    case(
        "a size with a B is refused with what to write",
        {"spec.s3.partSize": "25MB"},
        "spec.s3.partSize: 25MB is not a size: write 25Mi (by 1024) or 25M (by 1000)",
    ),
    case(
        "a fraction of a byte is refused",
        {"spec.s3.partSize": "5242880.5"},
        "spec.s3.partSize: 5242880.5 is not a whole number of bytes",
    ),
    case(
        "a bare number is no duration",
        HOURLY | {"spec.rotation.interval": 600},
        "spec.rotation.interval: 600 is not a duration: write 600s or 600ms",
    ),
    case(
        "a bare number in quotes is no duration either",
        HOURLY | {"spec.rotation.interval": "600"},
        "spec.rotation.interval: 600 is not a duration: write 600s or 600ms",
    ),
    case(
        "a duration in words is refused with what to write",
        HOURLY | {"spec.rotation.interval": "10 minutes"},
        'spec.rotation.interval: "10 minutes" is not a duration: write a duration with its units (d, h, m, s, ms; '
        "largest first) such as 10m or 1h30m",
    ),
    case(
        "a duration of nothing is refused",
        HOURLY | {"spec.rotation.interval": "0s"},
        "spec.rotation.interval: 0s is below the minimum of 1ms",
    ),
    case(
        "a schedule longer than a day is refused",
        HOURLY | {"spec.rotation.scheduleInterval": "25h"},
        "spec.rotation.scheduleInterval: 25h is above the maximum of 1d",
    ),
    case(
        "a flush size of 0 is refused",
        {"spec.rotation.flushSize": 0},
        "spec.rotation.flushSize: 0 is below the minimum of 1",
    ),
    case(
        "a number in quotes is no number",
        {"spec.rotation.flushSize": "90"},
        'spec.rotation.flushSize: "90" is not a whole number',
    ),
    case(
        "a fraction is no whole number",
        {"spec.rotation.flushSize": 9.5},
        "spec.rotation.flushSize: 9.5 is not a whole number",
    ),
    case(
        "true is no number",
        {"spec.rotation.flushSize": True},
        "spec.rotation.flushSize: true is not a whole number",
    ),
    case(
        "yes is neither true nor false",
        {"spec.rotation.onPathChange": "yes"},
        'spec.rotation.onPathChange: "yes" is not true or false',
    ),
    case(
        "no open object at all is refused",
        {"spec.rotation.maxOpenObjects": 0},
        "spec.rotation.maxOpenObjects: 0 is below the minimum of 1",
    ),
    case(
        "a bare number of whole seconds is taken for the connector's milliseconds",
        {"spec.rotation.interval": 3600000},
        "spec.rotation.interval: 3600000 is not a duration: write 1h (3600000ms)",
    ),
    case(
        "a value in the wrong case is corrected",
        {"spec.format.compression": "gzip"},
        "spec.format.compression: gzip is not one of None, Gzip, Zstd, Snappy, Lz4, Brotli; did you mean Gzip?",
    ),
    case(
        "an unknown value is answered with what there is",
        {"spec.onDataLoss": "Ignore"},
        "spec.onDataLoss: Ignore is not one of Fail, Continue",
    ),
    case(
        "a section that is text is refused",
        {"spec.rotation": "hourly"},
        'spec.rotation: "hourly" is not a mapping',
    ),
    case(
        "a list that is text is refused",
        {"spec.kafka.topics": "flights"},
        'spec.kafka.topics: "flights" is not a list: write [flights]',
    ),
    case(
        "topics with commas, as the connector has them, are refused",
        {"spec.kafka.topics": "flights,trains"},
        'spec.kafka.topics: "flights,trains" is not a list: write [flights, trains]',
    ),
    case(
        "a property that the sink owns is refused for its name, be it a number or text",
        {"spec.kafka.properties": {"max.poll.records": 500}},
        f"spec.kafka.properties[max.poll.records]: cannot be set here: {KAFKA_OWNED['max.poll.records']}",
    ),
    case(
        "the connector's converter is answered with ours",
        {"spec.format.converter": "org.apache.kafka.connect.json.JsonConverter"},
        "spec.format.converter: org.apache.kafka.connect.json.JsonConverter is not one of Json, JsonEnvelope, Text, "
        "Bytes, Cbor, Avro, Protobuf, JsonSchema; did you mean Json?",
    ),
    case(
        "the connector's format is answered with our output",
        {"spec.format.output": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"},
        "spec.format.output: io.confluent.connect.s3.format.bytearray.ByteArrayFormat is not one of Json, Bytes, Avro, "
        "Parquet; did you mean Bytes?",
    ),
    case(
        "the connector's partitioner is answered with ours",
        {"spec.partitioner.type": "TimeBasedPartitioner"},
        "spec.partitioner.type: TimeBasedPartitioner is not one of Default, Field, Time, Hourly, Daily, FieldAndTime; "
        "did you mean Time?",
    ),
    case(
        "a property that is a number asks for quotes",
        {"spec.kafka.properties": {"request.timeout.ms": 30000}},
        "spec.kafka.properties[request.timeout.ms]: 30000 is not text: put it in quotes",
    ),
    case(
        "a missing bucket is named with what it is",
        {"spec.s3.bucket": ABSENT},
        "spec.s3.bucket: is missing: bucket of the objects, such as flights-archive",
    ),
    case(
        "a missing section is named with what it is",
        {"spec.kafka": ABSENT},
        "spec.kafka: is missing: brokers of Kafka and topics to copy",
    ),
    case(
        "an empty list of topics is refused",
        {"spec.kafka.topics": []},
        "spec.kafka.topics: is empty: give at least one",
    ),
    case(
        "a topic that Kafka would not allow is refused",
        {"spec.kafka.topics": ["flights/2013"]},
        "spec.kafka.topics[0]: flights/2013 is not a topic: Kafka allows letters, digits, . _ and -",
    ),
    case(
        "a topic of dots is refused",
        {"spec.kafka.topics": [".."]},
        "spec.kafka.topics[0]: .. is not a topic: Kafka does not allow . and ..",
    ),
    case(
        "a topic that would stand where ledgers are is refused",
        {"spec.kafka.topics": ["_s3sink"]},
        "spec.kafka.topics[0]: _s3sink cannot be copied: its directory would be the one that holds the ledgers",
    ),
    case(
        "a pattern that is no regular expression is refused",
        {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "flights-("},
        "spec.kafka.topicsPattern: flights-( is not a regular expression: missing ), unterminated subpattern at "
        "position 8",
    ),
    case(
        "a topics pattern that is nested too deep to be read",
        {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "(" * 500 + "a" + ")" * 500},
        f"spec.kafka.topicsPattern: {'(' * 79}… has too many brackets inside each other",
    ),
    case(
        "a pattern that Java would not read is refused",
        {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "(?P<year>[0-9]+)"},
        "spec.kafka.topicsPattern: (?P<year>[0-9]+) uses (?P or (?(, which Java's regular expressions do not have",
    ),
    case(
        "brokers without a port are refused",
        {"spec.kafka.bootstrapServers": "kafka"},
        "spec.kafka.bootstrapServers: kafka is not a list of brokers: write host:port, separated by commas, without "
        "protocol (security.protocol is one of spec.kafka.properties)",
    ),
    case(
        "a consumer group of blanks is refused",
        {"spec.kafka.groupId": " flights"},
        'spec.kafka.groupId: " flights" has blanks around it',
    ),
    case(
        "a field with an empty segment is refused",
        {"spec.partitioner": {"type": "Field", "fields": ["origin..country"]}},
        "spec.partitioner.fields[0]: origin..country has an empty segment: write field names, separated by single dots",
    ),
    case(
        "a time zone in the wrong case is corrected",
        {"spec.partitioner": {"type": "Hourly", "timezone": "europe/berlin"}},
        "spec.partitioner.timezone: europe/berlin is not a time zone: write an IANA name or ±hh:mm; did you mean "
        "Europe/Berlin?",
    ),
    case(
        "an offset without minutes is refused",
        {"spec.partitioner": {"type": "Hourly", "timezone": "+2"}},
        "spec.partitioner.timezone: +2 is not a time zone: write an IANA name or ±hh:mm, such as Europe/Berlin or "
        "+02:00",
    ),
    case(
        "a locale that nobody speaks is refused",
        {"spec.partitioner": {"type": "Hourly", "timezone": "UTC", "locale": "xx-QQ"}},
        "spec.partitioner.locale: xx-QQ is not a known locale: write a language such as en, or language and country "
        "such as de-CH",
    ),
    case(
        "a letter that is no pattern letter is refused",
        TIME | {"spec.partitioner.pathFormat": "year=YYYY"},
        "spec.partitioner.pathFormat: year=YYYY uses the letter r: allowed are y Y M d D H h m s S a E e w x X Z z; "
        "text goes in single quotes",
    ),
    case(
        "a quote that is not closed is refused",
        TIME | {"spec.partitioner.pathFormat": "'year=YYYY"},
        "spec.partitioner.pathFormat: 'year=YYYY has a single quote that is not closed",
    ),
    case(
        "a pattern with an empty path element is refused",
        TIME | {"spec.partitioner.pathFormat": "YYYY//MM"},
        "spec.partitioner.pathFormat: YYYY//MM has an empty path element: no / at the beginning, and no //",
    ),
    case(
        "a pattern that climbs out of its directory is refused",
        TIME | {"spec.partitioner.pathFormat": "YYYY/'..'/MM"},
        "spec.partitioner.pathFormat: YYYY/'..'/MM has a path element . or ..",
    ),
    case(
        "a topicsDir that begins with a slash is refused",
        {"spec.s3.topicsDir": "/topics"},
        "spec.s3.topicsDir: /topics has an empty element: no / first, last or doubled",
    ),
    case(
        "a topicsDir inside the ledgers is refused",
        {"spec.s3.topicsDir": "data/_s3sink"},
        "spec.s3.topicsDir: data/_s3sink has the element _s3sink, which is kept for ledgers",
    ),
    case(
        "a topicsDir that climbs out of its directory is refused",
        {"spec.s3.topicsDir": "data/../other"},
        "spec.s3.topicsDir: data/../other has an element . or ..",
    ),
    case(
        "an empty delimiter is refused",
        {"spec.s3.directoryDelimiter": ""},
        "spec.s3.directoryDelimiter: is empty",
    ),
    case(
        "a delimiter with the directory of ledgers in it is refused",
        {"spec.s3.directoryDelimiter": "/_s3sink/"},
        "spec.s3.directoryDelimiter: /_s3sink/ has _s3sink, which is kept for ledgers",
    ),
    case(
        "a file delimiter that runs into the numbers is refused",
        {"spec.s3.fileDelimiter": "-0-"},
        "spec.s3.fileDelimiter: -0- has a digit: it could not be told from the partition and the offset",
    ),
    case(
        "a delimiter that is the escape of keys is refused",
        {"spec.s3.fileDelimiter": "%"},
        "spec.s3.fileDelimiter: % has a %, which is kept for characters that are escaped in keys",
    ),
    case(
        "padding by less than nothing is refused",
        {"spec.s3.offsetPadWidth": -1},
        "spec.s3.offsetPadWidth: -1 is below the minimum of 0",
    ),
    case(
        "a bucket in upper case is refused",
        {"spec.s3.bucket": "Archive"},
        "spec.s3.bucket: Archive is not a bucket: S3 allows lower-case letters, digits, - and ., none of the two at an "
        "end",
    ),
    case(
        "an endpoint whose scheme is in capitals is refused, as the API server does",
        {"spec.s3.endpoint": "HTTPS://minio:9000"},
        "spec.s3.endpoint: HTTPS://minio:9000 is not the URL of a store: write https://host or https://host:port",
    ),
    case(
        "an endpoint without a scheme is refused",
        {"spec.s3.endpoint": "minio:9000"},
        "spec.s3.endpoint: minio:9000 is not the URL of a store: write https://host or https://host:port",
    ),
    case(
        "an endpoint with the bucket in it is refused",
        {"spec.s3.endpoint": "https://minio:9000/archive"},
        "spec.s3.endpoint: https://minio:9000/archive is not the URL of a store: write https://host or "
        "https://host:port, without a path: the bucket stands in spec.s3.bucket",
    ),
    case(
        "an effort that gzip does not have is refused",
        {"spec.format.gzipLevel": 9},
        "spec.format.gzipLevel: 9 is above the maximum of 3",
    ),
    case(
        "an extension without a dot is refused",
        {"spec.format.bytesExtension": "bin"},
        "spec.format.bytesExtension: bin is not an extension: write a dot and letters or digits, such as .bin",
    ),
    case(
        "a sink id that would leave its directory is refused",
        {"spec.sinkId": "a..b"},
        "spec.sinkId: a..b is not a sink id: it cannot hold ..",
    ),
    case(
        "a sink id that would stand where owners are noted is refused",
        {"spec.sinkId": "topics"},
        "spec.sinkId: topics is taken: beside the ledgers, that directory says who owns a topic",
    ),
    case(
        "a sink id of more than 127 characters is refused",
        {"spec.sinkId": "a" * 128},
        f"spec.sinkId: {'a' * 79}… is longer than 127 characters",
    ),
    case(
        "a name in upper case is refused",
        {"metadata.name": "Flights"},
        "metadata.name: Flights is not a name: lower-case letters, digits and - are allowed, a letter or digit first "
        "and last",
    ),
    case(
        "no executor at all is refused",
        {"spec.executor.instances": 0},
        "spec.executor.instances: 0 is below the minimum of 1",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), WRONG)
def test_a_wrong_value_is_refused(changes: dict[str, object], expected: list[str]) -> None:
    assert mistakes(changes) == expected


RIGHT = [
    case("a size in bytes", {"spec.s3.partSize": 6_000_000}),
    case("a size by 1000", {"spec.s3.partSize": "25M"}),
    case("an empty topicsDir", {"spec.s3.topicsDir": ""}),
    case("a topicsDir of several elements", {"spec.s3.topicsDir": "lake/raw"}),
    case("no padding", {"spec.s3.offsetPadWidth": 0}),
    case("a delimiter of one dash", {"spec.s3.fileDelimiter": "-"}),
    case("an offset for a time zone", {"spec.partitioner": {"type": "Daily", "timezone": "-03:30"}}),
    case("a locale with a country", {"spec.partitioner": {"type": "Daily", "timezone": "UTC", "locale": "de_CH"}}),
    case("a pattern that ends in a slash", TIME | {"spec.partitioner.pathFormat": "'y'=YYYY/"}),
    case("an apostrophe in a pattern", TIME | {"spec.partitioner.pathFormat": "HH 'o''clock'"}),
    case("several brokers, one by its IPv6 address", {"spec.kafka.bootstrapServers": "a:9092, [::1]:9093"}),
    case(
        "a separator of two lines", {"spec.format": {"converter": "Bytes", "output": "Bytes", "bytesSeparator": "\n\n"}}
    ),
    case("a pod template of any shape", {"spec.executor.podTemplate": {"spec": {"tolerations": [{"key": "x"}]}}}),
    case("a status that a cluster wrote", {"status": {"conditions": []}}),
    case("metadata that a cluster wrote", {"metadata.uid": "8a", "metadata.labels": {"a": "b"}}),
]


@pytest.mark.parametrize(("changes", "expected"), RIGHT)
def test_a_right_value_is_accepted(changes: dict[str, object], expected: list[str]) -> None:
    assert expected == []
    accepted(changes)
