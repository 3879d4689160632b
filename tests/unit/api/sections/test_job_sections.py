"""The fields of the data path: the values that each accepts, and its message for another one."""

from __future__ import annotations

import pytest

from sink_job.api.rules.reserved_properties import KAFKA_OWNED
from sink_job.api.sections.job_sections import KafkaSpec, S3Spec
from sink_job.api.units.quantities import DAY, GI, MI
from tests.unit.api.manifests import ABSENT, HOURLY, TIME, accepted, case, spec_errors

INVALID = [
    case(
        "a part size below S3's minimum is rejected",
        {"spec.s3.partSize": "4Mi"},
        "spec.s3.partSize: 4Mi is below S3's minimum of 5Mi",
    ),
    case(
        "a part size above 2Gi is rejected",
        {"spec.s3.partSize": "3Gi"},
        "spec.s3.partSize: 3Gi is above S3's maximum of 2Gi",
    ),
    case(
        "a size with the unit MB is rejected with a suggestion",
        {"spec.s3.partSize": "25MB"},
        "spec.s3.partSize: 25MB is not a size: use 25Mi (1024) or 25M (1000)",
    ),
    case(
        "a fraction of a byte is rejected",
        {"spec.s3.partSize": "5242880.5"},
        "spec.s3.partSize: 5242880.5 is not a whole number of bytes",
    ),
    case(
        "a number without a unit is not a duration",
        HOURLY | {"spec.rotation.interval": 600},
        "spec.rotation.interval: 600 is not a duration: use 600s or 600ms",
    ),
    case(
        "a quoted number without a unit is not a duration",
        HOURLY | {"spec.rotation.interval": "600"},
        "spec.rotation.interval: 600 is not a duration: use 600s or 600ms",
    ),
    case(
        "a duration in words is rejected with the correct form",
        HOURLY | {"spec.rotation.interval": "10 minutes"},
        'spec.rotation.interval: "10 minutes" is not a duration: use a number with a unit (d, h, m, s, ms; largest '
        "first), such as 10m or 1h30m",
    ),
    case(
        "a duration of zero is rejected",
        HOURLY | {"spec.rotation.interval": "0s"},
        "spec.rotation.interval: 0s is below the minimum of 1ms",
    ),
    case(
        "a schedule longer than a day is rejected",
        HOURLY | {"spec.rotation.scheduleInterval": "25h"},
        "spec.rotation.scheduleInterval: 25h is above the maximum of 1d",
    ),
    case(
        "a flush size of 0 is rejected",
        {"spec.rotation.flushSize": 0},
        "spec.rotation.flushSize: 0 is below the minimum of 1",
    ),
    case(
        "a quoted number is not a number",
        {"spec.rotation.flushSize": "90"},
        'spec.rotation.flushSize: "90" is not a whole number',
    ),
    case(
        "a fraction is not a whole number",
        {"spec.rotation.flushSize": 9.5},
        "spec.rotation.flushSize: 9.5 is not a whole number",
    ),
    case(
        "true is not a number",
        {"spec.rotation.flushSize": True},
        "spec.rotation.flushSize: true is not a whole number",
    ),
    case(
        "yes is neither true nor false",
        {"spec.rotation.onPathChange": "yes"},
        'spec.rotation.onPathChange: "yes" is not true or false',
    ),
    case(
        "a maximum of zero open objects is rejected",
        {"spec.rotation.maxOpenObjects": 0},
        "spec.rotation.maxOpenObjects: 0 is below the minimum of 1",
    ),
    case(
        "a number without a unit is read as the connector's milliseconds in the suggestion",
        {"spec.rotation.interval": 3600000},
        "spec.rotation.interval: 3600000 is not a duration: use 1h (3600000ms)",
    ),
    case(
        "text in place of a section is rejected",
        {"spec.rotation": "hourly"},
        'spec.rotation: "hourly" is not a mapping',
    ),
    case(
        "text in place of a list is rejected",
        {"spec.kafka.topics": "flights"},
        'spec.kafka.topics: "flights" is not a list: write [flights]',
    ),
    case(
        "topics separated by commas, as in the connector, are rejected",
        {"spec.kafka.topics": "flights,trains"},
        'spec.kafka.topics: "flights,trains" is not a list: write [flights, trains]',
    ),
    case(
        "a reserved property is rejected by name, not by the type of its value",
        {"spec.kafka.properties": {"max.poll.records": 500}},
        f"spec.kafka.properties[max.poll.records]: cannot be set here: {KAFKA_OWNED['max.poll.records']}",
    ),
    case(
        "the connector's partitioner class gets a suggestion",
        {"spec.partitioner.type": "TimeBasedPartitioner"},
        "spec.partitioner.type: TimeBasedPartitioner is not one of Default, Field, Time, Hourly, Daily, FieldAndTime; "
        "did you mean Time?",
    ),
    case(
        "a number as a property value needs quotes",
        {"spec.kafka.properties": {"request.timeout.ms": 30000}},
        "spec.kafka.properties[request.timeout.ms]: 30000 is not text: put it in quotes",
    ),
    case(
        "a missing bucket is reported with its description",
        {"spec.s3.bucket": ABSENT},
        "spec.s3.bucket: is missing: bucket for the objects, for example flights-archive",
    ),
    case(
        "a missing section is reported with its description",
        {"spec.kafka": ABSENT},
        "spec.kafka: is missing: the source topics and the connection to Kafka",
    ),
    case(
        "an empty list of topics is rejected",
        {"spec.kafka.topics": []},
        "spec.kafka.topics: is empty: set at least one entry",
    ),
    case(
        "a topic name that Kafka does not allow is rejected",
        {"spec.kafka.topics": ["flights/2013"]},
        "spec.kafka.topics[0]: flights/2013 is not a valid topic name: Kafka allows letters, digits, . _ and -",
    ),
    case(
        "a topic name of dots is rejected",
        {"spec.kafka.topics": [".."]},
        "spec.kafka.topics[0]: .. is not a valid topic name: Kafka does not allow . and ..",
    ),
    case(
        "a topic with the name of the ledger directory is rejected",
        {"spec.kafka.topics": ["_s3sink"]},
        "spec.kafka.topics[0]: _s3sink cannot be copied: a directory of this name holds the ledgers",
    ),
    case(
        "a topics pattern that is not a regular expression is rejected",
        {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "flights-("},
        "spec.kafka.topicsPattern: flights-( is not a valid regular expression: missing ), unterminated subpattern at "
        "position 8",
    ),
    case(
        "a topics pattern with too many nested brackets is rejected",
        {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "(" * 500 + "a" + ")" * 500},
        f"spec.kafka.topicsPattern: {'(' * 79}… has too many nested brackets",
    ),
    case(
        "a topics pattern that Java does not support is rejected",
        {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "(?P<year>[0-9]+)"},
        "spec.kafka.topicsPattern: (?P<year>[0-9]+) uses (?P or (?(, which regular expressions of Java do not support",
    ),
    case(
        "brokers without a port are rejected",
        {"spec.kafka.bootstrapServers": "kafka"},
        "spec.kafka.bootstrapServers: kafka is not a list of brokers: use host:port, separated by commas, without a "
        "protocol (set security.protocol in spec.kafka.properties)",
    ),
    case(
        "a consumer group with a leading blank is rejected",
        {"spec.kafka.groupId": " flights"},
        'spec.kafka.groupId: " flights" starts or ends with a blank',
    ),
    case(
        "a field with an empty segment is rejected",
        {"spec.partitioner": {"type": "Field", "fields": ["origin..country"]}},
        "spec.partitioner.fields[0]: origin..country has an empty segment: use field names, separated by single dots",
    ),
    case(
        "a time zone in the wrong case gets a suggestion",
        {"spec.partitioner": {"type": "Hourly", "timezone": "europe/berlin"}},
        "spec.partitioner.timezone: europe/berlin is not a known time zone: use an IANA name or ±hh:mm; did you mean "
        "Europe/Berlin?",
    ),
    case(
        "an offset without minutes is rejected",
        {"spec.partitioner": {"type": "Hourly", "timezone": "+2"}},
        "spec.partitioner.timezone: +2 is not a known time zone: use an IANA name or ±hh:mm, such as Europe/Berlin or "
        "+02:00",
    ),
    case(
        "an unknown locale is rejected",
        {"spec.partitioner": {"type": "Hourly", "timezone": "UTC", "locale": "xx-QQ"}},
        "spec.partitioner.locale: xx-QQ is not a known locale: use a language such as en, or language and country such "
        "as de-CH",
    ),
    case(
        "an unknown pattern letter is rejected",
        TIME | {"spec.partitioner.pathFormat": "year=YYYY"},
        "spec.partitioner.pathFormat: year=YYYY has the unknown letter r: allowed are y Y M d D H h m s S a E e w x X "
        "Z z; put text in single quotes",
    ),
    case(
        "an unclosed quote is rejected",
        TIME | {"spec.partitioner.pathFormat": "'year=YYYY"},
        "spec.partitioner.pathFormat: 'year=YYYY has an unclosed single quote",
    ),
    case(
        "a pattern with an empty path element is rejected",
        TIME | {"spec.partitioner.pathFormat": "YYYY//MM"},
        "spec.partitioner.pathFormat: YYYY//MM has an empty path element: remove / at the beginning and //",
    ),
    case(
        "a date pattern with a parent directory is rejected",
        TIME | {"spec.partitioner.pathFormat": "YYYY/'..'/MM"},
        "spec.partitioner.pathFormat: YYYY/'..'/MM has a path element . or ..",
    ),
    case(
        "a topicsDir that begins with a slash is rejected",
        {"spec.s3.topicsDir": "/topics"},
        "spec.s3.topicsDir: /topics has an empty element: remove / at the start, / at the end and //",
    ),
    case(
        "a topicsDir inside the ledgers is rejected",
        {"spec.s3.topicsDir": "data/_s3sink"},
        "spec.s3.topicsDir: data/_s3sink contains the directory _s3sink, which is reserved for ledgers",
    ),
    case(
        "a topicsDir with a parent directory is rejected",
        {"spec.s3.topicsDir": "data/../other"},
        "spec.s3.topicsDir: data/../other has an element . or ..",
    ),
    case(
        "an empty delimiter is rejected",
        {"spec.s3.directoryDelimiter": ""},
        "spec.s3.directoryDelimiter: is empty",
    ),
    case(
        "a delimiter that contains the ledger directory is rejected",
        {"spec.s3.directoryDelimiter": "/_s3sink/"},
        "spec.s3.directoryDelimiter: /_s3sink/ contains _s3sink, which is reserved for ledgers",
    ),
    case(
        "a file delimiter with a digit is rejected",
        {"spec.s3.fileDelimiter": "-0-"},
        "spec.s3.fileDelimiter: -0- contains a digit: it must differ from the digits of partition and offset",
    ),
    case(
        "a delimiter with the escape character of keys is rejected",
        {"spec.s3.fileDelimiter": "%"},
        "spec.s3.fileDelimiter: % contains %, which is reserved for escaped characters in keys",
    ),
    case(
        "a negative padding is rejected",
        {"spec.s3.offsetPadWidth": -1},
        "spec.s3.offsetPadWidth: -1 is below the minimum of 0",
    ),
    case(
        "a bucket in upper case is rejected",
        {"spec.s3.bucket": "Archive"},
        "spec.s3.bucket: Archive is not a valid bucket name: S3 allows lower-case letters, digits, - and .; the first "
        "and last character must be a letter or a digit",
    ),
    case(
        "an endpoint with an upper-case scheme is rejected, as by the API server",
        {"spec.s3.endpoint": "HTTPS://minio:9000"},
        "spec.s3.endpoint: HTTPS://minio:9000 is not the URL of a store: use https://host or https://host:port",
    ),
    case(
        "an endpoint without a scheme is rejected",
        {"spec.s3.endpoint": "minio:9000"},
        "spec.s3.endpoint: minio:9000 is not the URL of a store: use https://host or https://host:port",
    ),
    *(
        case(
            f"an endpoint with the host {host} is rejected, as by boto3",
            {"spec.s3.endpoint": f"https://{host}:9000"},
            f"spec.s3.endpoint: https://{host}:9000 has no valid host: use letters, digits, - and ., or an IP address",
        )
        for host in ("my_minio", "-minio", "minio..lake", "münchen")
    ),
    case(
        "an endpoint with the end of a line is rejected",
        {"spec.s3.endpoint": "https://minio:9000\n"},
        'spec.s3.endpoint: "https://minio:9000\\n" has no valid host: use letters, digits, - and ., or an IP address',
    ),
    case(
        "an endpoint with a bucket is rejected",
        {"spec.s3.endpoint": "https://minio:9000/archive"},
        "spec.s3.endpoint: https://minio:9000/archive is not the URL of a store: use https://host or "
        "https://host:port, without a path: set the bucket in spec.s3.bucket",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), INVALID)
def test_an_invalid_value_is_rejected(changes: dict[str, object], expected: list[str]) -> None:
    assert spec_errors(changes) == expected


VALID = [
    case("a size in bytes", {"spec.s3.partSize": 6_000_000}),
    case("a size in powers of 1000", {"spec.s3.partSize": "25M"}),
    case("an empty topicsDir", {"spec.s3.topicsDir": ""}),
    case("a topicsDir of several elements", {"spec.s3.topicsDir": "lake/raw"}),
    case("no padding", {"spec.s3.offsetPadWidth": 0}),
    case("a dash as delimiter", {"spec.s3.fileDelimiter": "-"}),
    case("an offset for a time zone", {"spec.partitioner": {"type": "Daily", "timezone": "-03:30"}}),
    case("a locale with a country", {"spec.partitioner": {"type": "Daily", "timezone": "UTC", "locale": "de_CH"}}),
    case("a pattern that ends in a slash", TIME | {"spec.partitioner.pathFormat": "'y'=YYYY/"}),
    case("an apostrophe in a pattern", TIME | {"spec.partitioner.pathFormat": "HH 'o''clock'"}),
    case("several brokers, one by its IPv6 address", {"spec.kafka.bootstrapServers": "a:9092, [::1]:9093"}),
]


@pytest.mark.parametrize(("changes", "expected"), VALID)
def test_a_valid_value_is_accepted(changes: dict[str, object], expected: list[str]) -> None:
    assert expected == []
    accepted(changes)


@pytest.mark.parametrize(
    ("field", "lowest", "highest"),
    [
        ("s3.partSize", 5 * MI, 2 * GI),
        ("s3.offsetPadWidth", 0, 64),
        ("rotation.flushSize", 1, 2**53 - 1),
        ("rotation.maxOpenObjects", 1, 2**53 - 1),
        ("rotation.maxBytes", 1, None),
        ("rounds.minBytes", 0, None),
        ("rounds.maxBytes", 1, None),
        ("rounds.maxRecords", 1, 2**53 - 1),
    ],
)
def test_a_number_is_accepted_up_to_its_bounds(field: str, lowest: int, highest: int | None) -> None:
    rounds = {"spec.rounds.minBytes": 0} if field.startswith("rounds.max") else {}
    accepted(rounds, {f"spec.{field}": lowest})
    [error] = spec_errors(rounds, {f"spec.{field}": lowest - 1})
    assert error.startswith(f"spec.{field}: ")
    if highest is not None:
        accepted({f"spec.{field}": highest})
        [error] = spec_errors({f"spec.{field}": highest + 1})
        assert error.startswith(f"spec.{field}: {highest + 1} is above ")


@pytest.mark.parametrize(
    ("field", "lowest", "highest"),
    [
        ("rotation.interval", 1, None),
        ("rotation.scheduleInterval", 1, DAY),
        ("rotation.maxOpenTime", 1, None),
        ("rounds.maxDelay", 0, DAY),
    ],
)
def test_a_time_is_accepted_up_to_its_bounds(field: str, lowest: int, highest: int | None) -> None:
    accepted(HOURLY, {f"spec.{field}": f"{lowest}ms"})
    if lowest:
        [error] = spec_errors(HOURLY, {f"spec.{field}": f"{lowest - 1}ms"})
        assert error == f"spec.{field}: 0ms is below the minimum of {lowest}ms"
    if highest is not None:
        accepted(HOURLY, {f"spec.{field}": f"{highest}ms"})
        [error] = spec_errors(HOURLY, {f"spec.{field}": f"{highest + 1}ms"})
        assert error == f"spec.{field}: {highest + 1}ms is above the maximum of 1d"


@pytest.mark.parametrize(
    ("endpoint", "insecure", "allowed"),
    [
        (None, False, False),
        ("https://minio:9000", False, False),
        ("http://minio:9000", True, True),
        ("http://127.0.0.1:9000", False, True),
        ("http://localhost:9000", False, True),
    ],
)
def test_an_endpoint_without_tls_is_allowed_on_loopback_or_with_insecure(
    endpoint: str | None, insecure: bool, allowed: bool
) -> None:
    assert S3Spec(bucket="archive", endpoint=endpoint, insecure=insecure).allows_http is allowed


def test_a_property_with_a_secret_is_hidden_where_the_section_is_printed() -> None:
    properties = {"sasl.mechanism": "PLAIN", "ssl.key.password": "hunter2"}
    shown = repr(KafkaSpec(bootstrap_servers="kafka:9092", topics=["flights"], properties=properties))
    assert "'sasl.mechanism': 'PLAIN'" in shown
    assert "hunter2" not in shown
