"""Partitioners, time zones and timestamps."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.migrate.findings import Severity
from tests.unit.migrate.test_conversion import PARTITIONER, findings_of, spec_of

TIME = {
    "partitioner.class": f"{PARTITIONER}.TimeBasedPartitioner",
    "path.format": "'year'=YYYY/'hour'=HH",
    "partition.duration.ms": "3600000",
    "timezone": "UTC",
}
FIELD = {"partitioner.class": f"{PARTITIONER}.FieldPartitioner", "partition.field.name": "carrier,$type"}


def paths(settings: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = spec_of(settings).get("partitioner", {})
    return found


def left_out(settings: dict[str, str]) -> list[str]:
    return [each.split("=")[0] for each in findings_of(settings, Severity.LEFT_OUT)]


@pytest.mark.parametrize("kind", ["Default", "Hourly", "Daily"])
def test_each_partitioner_has_its_type(kind: str) -> None:
    assert paths({"partitioner.class": f"{PARTITIONER}.{kind}Partitioner", "timezone": "UTC"})["type"] == kind


@pytest.mark.parametrize(
    "name", ["com.example.DefaultPartitioner", "com.canelmas.kafka.connect.FieldAndTimeBasedPartitioner"]
)
def test_a_partitioner_of_ones_own_cannot_be_converted(name: str) -> None:
    assert len(findings_of({"partitioner.class": name}, Severity.IMPOSSIBLE)) == 1


def test_fields_that_begin_with_a_dollar_are_fields_of_the_value() -> None:
    assert paths(FIELD) == {"type": "Field", "fields": ["carrier", "$value.$type"]}


def test_fields_need_a_converter_that_reads_fields() -> None:
    settings = {**FIELD, "value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    assert len(findings_of(settings, Severity.IMPOSSIBLE)) == 1


def test_settings_of_other_partitioners_are_left_out() -> None:
    settings = {"partition.field.name": "a", "path.format": "YYYY", "timestamp.extractor": "Record", "timezone": "UTC"}
    assert set(left_out(settings)) >= set(settings)
    assert paths(settings) == {}
    hourly = {**TIME, "partitioner.class": f"{PARTITIONER}.HourlyPartitioner"}
    assert {"path.format", "partition.duration.ms"} <= set(left_out(hourly))


def test_a_time_partitioner_has_duration_pattern_zone_and_the_default_extractor() -> None:
    assert paths(TIME) == {
        "type": "Time",
        "duration": "1h",
        "pathFormat": "'year'=YYYY/'hour'=HH",
        "timezone": "UTC",
        "timestampExtractor": "Wallclock",
    }


@pytest.mark.parametrize(("pattern", "duration"), [("YYYY", "1d"), ("'h'=HH", "1h"), ("HH/mm", "1m"), ("'HH'", "1d")])
def test_a_missing_duration_is_that_of_the_smallest_unit_of_the_pattern_and_reported(
    pattern: str, duration: str
) -> None:
    settings = {**TIME, "path.format": pattern, "partition.duration.ms": "-1"}
    assert paths(settings)["duration"] == duration
    assert len(findings_of(settings)) == 1


@pytest.mark.parametrize("pattern", ["", "dt=YYYY", "'a", "/YYYY", "YYYY//MM"])
def test_a_pattern_that_is_not_supported_cannot_be_converted(pattern: str) -> None:
    assert len(findings_of({**TIME, "path.format": pattern}, Severity.IMPOSSIBLE)) == 1


@pytest.mark.parametrize("zone", ["", "Mars/Base", "${env:TZ}"])
def test_a_time_zone_that_is_unknown_is_reported_and_utc_is_written(zone: str) -> None:
    assert paths({**TIME, "timezone": zone})["timezone"] == "UTC"
    assert len(findings_of({**TIME, "timezone": zone})) == 1


def test_a_schedule_needs_a_time_zone_too() -> None:
    assert paths({"rotate.schedule.interval.ms": "60000", "timezone": "Asia/Seoul"}) == {"timezone": "Asia/Seoul"}


def test_a_locale_matters_for_names_of_months_and_days_only() -> None:
    assert "locale" in left_out({**TIME, "locale": "US"})
    assert paths({**TIME, "path.format": "MMM", "locale": "fr"})["locale"] == "fr"


@pytest.mark.parametrize("locale", ["en-US", "ko-KR", "pt_BR", "de_DE", "nowhere", "us"])
def test_a_locale_that_java_does_not_have_gives_short_english_names(locale: str) -> None:
    found = paths({**TIME, "path.format": "'MMMM='MMMM/EEEE/MMM/MM", "locale": locale})
    assert found["pathFormat"] == "'MMMM='MMM/EEE/MMM/MM"
    assert "locale" not in found


@pytest.mark.parametrize("locale", ["nl", "fa", "hi"])
def test_names_that_are_not_known_to_be_equal_are_reported(locale: str) -> None:
    assert len(findings_of({**TIME, "path.format": "MMM", "locale": locale})) == 1
    assert findings_of({**TIME, "path.format": "MMM", "locale": "fr"}) == []


@pytest.mark.parametrize(
    ("pattern", "locale", "zone", "reported"),
    [
        ("z", "en", "America/Sao_Paulo", 1),
        ("zzzz", "en", "UTC", 1),
        ("z", "de", "Europe/Berlin", 1),
        ("z", "en", "UTC", 0),
        ("Z", "en", "America/Sao_Paulo", 0),
    ],
)
def test_names_of_time_zones_are_reported(pattern: str, locale: str, zone: str, reported: int) -> None:
    found = findings_of({**TIME, "path.format": pattern, "locale": locale, "timezone": zone})
    assert len(found) == reported


@pytest.mark.parametrize("name", ["RecordField", f"{PARTITIONER}.TimeBasedPartitioner$RecordFieldTimestampExtractor"])
def test_a_record_field_has_its_name_or_the_default(name: str) -> None:
    found = paths({**TIME, "timestamp.extractor": name})
    assert (found["timestampExtractor"], found["timestampField"]) == ("RecordField", "timestamp")
    assert paths({**TIME, "timestamp.extractor": name, "timestamp.field": "a.b"})["timestampField"] == "a.b"


def test_a_timestamp_field_has_no_effect_with_another_extractor() -> None:
    assert "timestamp.field" in left_out({**TIME, "timestamp.extractor": "Record", "timestamp.field": "a"})


@pytest.mark.parametrize("name", ["com.example.Extractor", "com.example.Record"])
def test_an_extractor_of_ones_own_cannot_be_converted(name: str) -> None:
    assert len(findings_of({**TIME, "timestamp.extractor": name}, Severity.IMPOSSIBLE)) == 1


def test_the_name_of_the_schema_can_be_in_the_path() -> None:
    assert paths({"s3.schema.partition.affix.type": "PREFIX"}) == {"schemaName": "Prefix"}


def test_fields_of_json_without_a_schema_are_reported() -> None:
    """The connector's FieldPartitioner needs a struct."""
    (finding,) = findings_of(FIELD)
    assert "stops at its first record" in finding
    assert findings_of({**FIELD, "value.converter.schemas.enable": "true"}) == []


def test_times_that_the_connector_reads_in_another_way_are_named() -> None:
    found = findings_of({**TIME, "timestamp.extractor": "RecordField"}, Severity.TO_DO)
    assert any("texts of one to four digits" in each for each in found)


def test_a_duration_of_more_than_100_years_is_reported() -> None:
    settings = {**TIME, "partition.duration.ms": "99999999999999"}
    assert paths(settings)["duration"] == "36500d"
    assert len(findings_of(settings)) == 1
