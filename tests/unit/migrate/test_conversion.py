"""The conversion as a whole: any configuration has a valid manifest or reasons, and no secret is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.parser import load_sink
from sink_job.migrate.conversion import convert, sink_name
from sink_job.migrate.findings import Configuration, Severity
from sink_job.migrate.table import KeyOwner, Treatment, key_table

S3 = "io.confluent.connect.s3.S3SinkConnector"
FORMAT = "io.confluent.connect.s3.format"
PARTITIONER = "io.confluent.connect.storage.partitioner"
MINIMAL = {
    "connector.class": S3,
    "topics": "flights",
    "s3.bucket.name": "flights-archive",
    "s3.region": "eu-central-1",
    "flush.size": "1000",
    "format.class": f"{FORMAT}.json.JsonFormat",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def spec_of(settings: dict[str, str], **more: Any) -> dict[str, Any]:
    """The spec of the manifest, as plain data."""
    manifest = convert(Configuration({**MINIMAL, **settings}, "flights"), **more).manifest
    load_sink(manifest)
    spec: dict[str, Any] = yaml.safe_load(manifest)["spec"]
    return spec


def findings_of(settings: dict[str, str], severity: Severity = Severity.DIFFERENT) -> list[str]:
    found = convert(Configuration({**MINIMAL, **settings}, "flights")).findings
    return [str(each) for each in found if each.severity is severity]


def test_a_minimal_connector_is_converted_without_a_difference() -> None:
    assert convert(Configuration(MINIMAL, "flights")).exit_code == 0
    assert spec_of({}) == {
        "kafka": {
            "bootstrapServers": "replace-me:9092",
            "topics": ["flights"],
            "groupId": "connect-flights",
            "startingOffsets": "Earliest",
            "isolationLevel": "ReadUncommitted",
        },
        "format": {"converter": "Json", "output": "Json"},
        "rotation": {"flushSize": 1000},
        "s3": {"bucket": "flights-archive", "region": "eu-central-1"},
    }


def test_the_last_step_before_the_first_start_is_to_look_where_the_sink_starts() -> None:
    lines = convert(Configuration({**MINIMAL, "storage.class": "x"}, "flights")).lines
    heading = lines.index("# Before the first start:")
    *_, step, rest = lines[heading : lines.index("#", heading)]
    assert step.startswith("#   Stop the connector; s3sink run MANIFEST --from-connector --dry-run then prints where")
    assert rest == "#     prevents it"


def test_all_reasons_not_to_convert_are_reported_at_once_with_the_keys_that_may_be_misspelled() -> None:
    wrong = {"value.converter": "com.example.Csv", "partitioner.class": "com.example.P", "transforms": "a", "x": "y"}
    found = convert(Configuration({**MINIMAL, **wrong}, "flights"))
    assert (found.exit_code, found.lines) == (9, ())
    assert [each.setting.split("=")[0] for each in found.findings] == [
        "value.converter",
        "transforms",
        "partitioner.class",
        "x",
    ]


def test_transforms_are_named_with_their_types() -> None:
    settings = {"transforms": "a, b", "transforms.a.type": "org.example.A", "transforms.b.type": "org.example.B"}
    found = findings_of(settings, Severity.IMPOSSIBLE)
    assert ["a (org.example.A) is a" in found[0], "b (org.example.B) is a" in found[1]] == [True, True]


def test_an_unknown_key_is_reported_without_its_value_and_with_the_nearest_name() -> None:
    assert findings_of({"flush.sise": "hunter2"}) == ["flush.sise: this key is not known; did you mean flush.size?"]


def test_a_setting_without_counterpart_is_reported_unless_it_has_its_default() -> None:
    assert findings_of({"store.kafka.keys": "true"}) != []
    assert findings_of({"store.kafka.keys": "FALSE"}) == []


def test_the_name_of_the_sink_is_one_that_kubernetes_allows_and_the_group_keeps_the_name() -> None:
    manifest = yaml.safe_load(convert(Configuration(MINIMAL, "S3_Flights.v2")).manifest)
    assert manifest["metadata"] == {"name": "s3-flights-v2"}
    assert manifest["spec"]["kafka"]["groupId"] == "connect-S3_Flights.v2"


@pytest.mark.parametrize(
    ("connector", "name"),
    [("Flights", "flights"), ("__", "s3sink"), ("ä", "s3sink"), ("a" * 300, "a" * 40), ("-a..b-", "a-b"), ("1", "1")],
)
def test_names_of_sinks(connector: str, name: str) -> None:
    assert sink_name(connector) == name


def test_a_given_name_is_not_explained_and_a_made_one_is() -> None:
    given = convert(Configuration(MINIMAL, "S3_Flights"), name="renamed")
    assert not any("Kubernetes does not allow" in str(each) for each in given.findings)
    assert any("Kubernetes does not allow" in str(each) for each in convert(Configuration(MINIMAL, "S3_x")).findings)


def test_the_namespace_and_the_state_of_a_resource_are_taken_over() -> None:
    manifest = yaml.safe_load(convert(Configuration(MINIMAL, "flights", "kafka", "Paused")).manifest)
    assert (manifest["metadata"]["namespace"], manifest["spec"]["state"]) == ("kafka", "Paused")


@pytest.mark.parametrize(("state", "named"), [("Paused", True), ("Stopped", True), ("Running", False)])
def test_a_sink_that_does_not_start_as_it_is_has_a_comment(state: str, named: bool) -> None:
    found = convert(Configuration(MINIMAL, "flights", state=state)).findings
    assert any(f"state: {state}" in str(each) for each in found if each.severity is Severity.TO_DO) == named


def test_a_namespace_that_kubernetes_does_not_allow_is_left_out() -> None:
    manifest = yaml.safe_load(convert(Configuration(MINIMAL, "flights", "{{ .Values.namespace }}")).manifest)
    assert manifest["metadata"] == {"name": "flights"}


def test_the_settings_of_errors_are_taken_over() -> None:
    settings = {"errors.tolerance": "all", "behavior.on.null.values": "ignore"}
    assert spec_of(settings)["errors"] == {"tolerance": "All", "onNullValue": "Ignore"}


@pytest.mark.parametrize(
    ("more", "path"), [({}, "tombstone"), ({"tombstone.encoded.partition": "gone"}, "gone")], ids=["default", "given"]
)
def test_tombstones_are_written_with_an_envelope_which_is_reported(more: dict[str, str], path: str) -> None:
    settings = {"behavior.on.null.values": "write", **more}
    spec = spec_of(settings)
    assert (spec["errors"], spec["format"]["envelope"]) == ({"onNullValue": "Write", "tombstonePath": path}, True)
    (finding,) = findings_of(settings)
    assert "not one of keys alone" in str(finding)


def test_a_path_of_tombstones_that_is_none_is_reported() -> None:
    settings = {"behavior.on.null.values": "write", "tombstone.encoded.partition": "/gone"}
    assert spec_of(settings)["errors"]["tombstonePath"] == "tombstone"
    assert len(findings_of(settings)) == 2
    delimited = {**settings, "tombstone.encoded.partition": "gone--", "directory.delim": "--"}
    assert any("directory.delim" in each for each in findings_of(delimited, Severity.IMPOSSIBLE))


def test_tombstones_in_an_output_without_envelopes_are_reported_and_stop_the_sink() -> None:
    settings = {
        "behavior.on.null.values": "write",
        "format.class": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat",
    }
    assert spec_of(settings)["errors"] == {"onNullValue": "Fail"}
    assert any("the output Bytes has no envelope" in str(each) for each in findings_of(settings))


def test_a_path_of_tombstones_has_no_effect_if_they_are_not_written() -> None:
    settings = {"tombstone.encoded.partition": "gone"}
    assert "errors" not in spec_of(settings)
    assert findings_of(settings) == []


def test_a_dead_letter_topic_and_its_headers_are_converted() -> None:
    settings = {"errors.deadletterqueue.topic.name": "dlq", "errors.tolerance": "all"}
    assert spec_of(settings)["errors"] == {"tolerance": "All", "deadLetters": {"topic": "dlq", "headers": False}}
    settings["errors.deadletterqueue.context.headers.enable"] = "true"
    assert spec_of(settings)["errors"] == {"tolerance": "All", "deadLetters": {"topic": "dlq"}}
    assert findings_of(settings) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"nullValues": True}),
        ({"report.null.values.to.dlq": "true"}, {"nullValues": True}),
        ({"report.null.values.to.dlq": "false"}, {}),
        ({"behavior.on.null.values": "fail"}, {}),
    ],
)
def test_tombstones_are_dead_letters_as_with_the_connector(more: dict[str, str], expected: dict[str, bool]) -> None:
    settings = {"errors.deadletterqueue.topic.name": "dlq", "errors.tolerance": "all"}
    settings |= {"behavior.on.null.values": "ignore", **more}
    assert spec_of(settings)["errors"]["deadLetters"] == {"topic": "dlq", "headers": False, **expected}
    assert findings_of(settings) == []
    left_out = findings_of(settings, Severity.LEFT_OUT)
    assert not [each for each in left_out if "null.values" in each and "nullValues" in expected]


def test_a_dead_letter_topic_has_to_be_created() -> None:
    settings = {"errors.deadletterqueue.topic.name": "dlq", "errors.tolerance": "all"}
    assert any("--create --topic dlq" in each for each in findings_of(settings, Severity.TO_DO))


def test_a_dead_letter_topic_has_no_effect_without_tolerance() -> None:
    assert findings_of({"errors.deadletterqueue.topic.name": "dlq"}) == []


def test_stored_keys_and_headers_are_reported_with_the_envelope_as_the_way_out() -> None:
    found = findings_of({"store.kafka.keys": "true", "store.kafka.headers": "true"})
    assert [("keys" in each, "format.envelope" in each) for each in found] == [(True, True), (False, True)]


def test_comments_in_the_configuration_are_left_out() -> None:
    assert findings_of({"_comment": "how many", "//": "x"}) == []


def test_names_with_line_breaks_stay_on_one_line() -> None:
    settings = {"a\nkind: Secret": "x", "topics": "flights\nkind: Secret"}
    spec_of(settings)


def test_the_remarks_of_a_running_connector_are_above_the_manifest() -> None:
    found = convert(Configuration(MINIMAL, "flights", remarks=("Task 0 of the connector is FAILED.",)))
    assert "# Task 0 of the connector is FAILED." in found.lines


KEYS = [row.key.replace("*", "x") for row in key_table().rows if row.owner is KeyOwner.CONNECTOR]
CONVERTER_KEYS = [
    f"value.converter.{r.key.replace('*', 'x')}" for r in key_table().rows if r.owner is not KeyOwner.CONNECTOR
]
CLASSES = [
    "org.apache.kafka.connect.json.JsonConverter",
    "org.apache.kafka.connect.storage.StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "io.confluent.connect.avro.AvroConverter",
    "io.confluent.connect.json.JsonSchemaConverter",
    "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter",
    "io.apicurio.registry.utils.converter.AvroConverter",
]
TEXTS = [
    "", " ", "-1", "0", "1", "5", "9223372036854775807", "99999999999999999999", "1.5", "true", "FALSE", "yes", "none",
    "NONE", "FULL", "gzip", "snappy", "null", "NUMERIC", "all", "ignore", "write", "PREFIX", "Record", "RecordField",
    "earliest", "read_committed", "$key", "a.b", "a..b", "a,b,a", "/", "//", "x/", "..", "_s3sink", "UTC", "Mars/Base",
    "+02:00", "yyyy/MM", "'a", "en", "xx-YY-ZZ", "http://store:9000", "https://u:p@store/x?y=z", "${env:X}",
    "${secrets:a/b:c}", "${secrets:kafka/s3:AWS_ACCESS_KEY_ID}", "é\n", "%", ".bin", "bin", "A" * 300, "5242880",
    "4294967296", "on", "~", "0x10", "1e3", "# x", ": ", "- a", "{a: b}", "a: b", "'", '"', "\\", "us-west-2", "(?=a)b",
    "[", "contentId",
]  # fmt: skip
ANY_TEXT = st.one_of(st.sampled_from(TEXTS), st.text(max_size=8))


DEAD_LETTERS: list[dict[str, str]] = [
    {},
    *(
        {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "flights-dlq", **topics}
        for topics in (
            {"topics": "flights,flights-dlq"},
            {"topics": "flights-dlq"},
            {"topics": "", "topics.regex": "flights.*"},
            {"topics": "", "topics.regex": "(?i)a|FLIGHTS.*"},
        )
    ),
]


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, str]:
    settings = dict(MINIMAL)
    settings["value.converter"] = draw(st.sampled_from([*CLASSES, "JsonConverter", ""]))
    settings["format.class"] = draw(
        st.sampled_from(
            ["json.JsonFormat", "avro.AvroFormat", "parquet.ParquetFormat", "bytearray.ByteArrayFormat"]
        ).map(lambda name: f"{FORMAT}.{name}")
    )
    settings["partitioner.class"] = draw(
        st.sampled_from(["Default", "Field", "TimeBased", "Hourly", "Daily"]).map(
            lambda name: f"{PARTITIONER}.{name}Partitioner"
        )
    )
    settings |= {"path.format": "'year'=YYYY/'month'=MM", "partition.field.name": "carrier"}
    settings |= draw(st.sampled_from(DEAD_LETTERS))
    keys = draw(st.lists(st.sampled_from([*KEYS, *CONVERTER_KEYS]), max_size=8))
    settings |= {key: draw(ANY_TEXT) for key in keys if key not in ("connector.class", "transforms")}
    for key in draw(st.lists(st.sampled_from(list(MINIMAL)), max_size=2)):
        if key != "connector.class":
            settings.pop(key, None)
    return settings


@given(configurations(), st.one_of(st.none(), st.sampled_from(["kafka", "Not A Namespace"])))
def test_any_configuration_has_a_valid_manifest_or_reasons(settings: dict[str, str], namespace: str | None) -> None:
    found = convert(Configuration(settings, "flights", namespace))
    if found.exit_code == 9:
        assert found.lines == ()
        assert found.findings != ()
        return
    sink = load_sink(found.manifest)
    assert load_sink(yaml.safe_dump(yaml.safe_load(found.manifest))) == sink


@given(configurations(), configurations())
def test_settings_of_a_worker_never_make_a_manifest_invalid(settings: dict[str, str], worker: dict[str, str]) -> None:
    of_worker = {key.replace("consumer.override.", "consumer."): value for key, value in worker.items()}
    settings.pop("value.converter", None)
    found = convert(Configuration(settings, "flights"), of_worker)
    if found.lines:
        load_sink(found.manifest)


SECRET_KEYS = [
    row.key.replace("*", "password")
    if row.owner is KeyOwner.CONNECTOR
    else f"value.converter.{row.key.replace('*', 'password')}"
    for row in key_table().rows
    if row.is_secret or row.key.endswith("*")
]


@given(
    st.lists(st.sampled_from([*SECRET_KEYS, "my.unknown.key", "value.converter.unknown"]), min_size=1, max_size=9),
    st.sampled_from(CLASSES),
)
def test_no_secret_is_shown_not_even_partly(keys: list[str], converter: str) -> None:
    secrets = {key: f"s3cr3t{number}Zz" for number, key in enumerate(dict.fromkeys(keys))}
    settings = {**MINIMAL, "value.converter": converter, **secrets}
    found = convert(Configuration(settings, "flights"), {"consumer.sasl.jaas.config": 'X required password="s3cr3t";'})
    assert "s3cr3t" not in json.dumps([found.lines, [str(each) for each in found.findings]])


def test_every_key_of_the_table_without_a_field_is_reported() -> None:
    for row in key_table().rows:
        if row.owner is KeyOwner.CONNECTOR and row.treatment is Treatment.DIFFERENT:
            found = findings_of({row.key.replace("*", "x"): "something"}, Severity.DIFFERENT)
            left_out = findings_of({row.key.replace("*", "x"): "something"}, Severity.LEFT_OUT)
            assert found or any(each.startswith(row.key.rstrip("*")) for each in left_out), row.key
