"""The names and texts in paths of objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.spec import ObjectSettings
from sink_job.partitioning.partitioner import PathPartitioner
from sink_job.records.fields import safe
from sink_job.tables.partitions.object_paths import PathLayout, TimeColumn, layout_of, path_values

DELIMITERS = ("/", "//", ".", "=", "a")
TEXTS = st.text(st.sampled_from("a/=%.2Fü\n#\x00") | st.characters(exclude_categories=["Cs"]), max_size=8)


def settings(partitioner: dict[str, Any], delimiter: str = "/", *, envelope: bool = False) -> ObjectSettings:
    return ObjectSettings.model_validate(
        {
            "format": {"converter": "ConnectJson", "output": "Parquet", "envelope": envelope},
            "partitioner": partitioner,
            "s3": {"directoryDelimiter": delimiter},
        }
    )


@given(TEXTS, TEXTS, st.sampled_from(DELIMITERS))
def test_the_texts_of_fields_are_found_in_the_paths_of_the_partitioner(one: str, two: str, delimiter: str) -> None:
    """With a delimiter that names contain, or `=`, some are not found; no text is of another field."""
    made = settings({"type": "Field", "fields": ["k", "b=c"]}, delimiter)
    columns = PathPartitioner.of(made).partition(1, 0, partition=0, fields={"k": [one], "b=c": [two]})
    (path,) = columns.paths
    found = path_values(path, layout_of(made))
    expected = {"k": safe(one, delimiter), "b=c": safe(two, delimiter)}
    if delimiter in ("/", "//"):
        assert found == expected
    assert all(found[name] == text for name, text in expected.items() if name in found)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("partition=3", {"partition": "3"}),
        ("year=2026/month=01/day=05", {"year": "2026", "month": "01", "day": "05"}),
        ("2026/05/k=a=b", {"k": "a=b"}),
        ("k=a/k=b/l=", {"l": ""}),
        ("=a/b", {}),
        ("k=null", {"k": "null"}),
    ],
)
def test_a_path_has_the_values_of_its_names(path: str, expected: dict[str, str]) -> None:
    assert path_values(path, PathLayout()) == expected


@pytest.mark.parametrize(
    ("name", "plain", "enveloped"),
    [("a.b", "a.b", "value.a.b"), ("$key.id", "key.id", "key.id"), ("$partition", "partition", "partition")],
)
def test_a_field_of_a_path_is_a_column_of_the_rows(name: str, plain: str, enveloped: str) -> None:
    for envelope, expected in ((False, plain), (True, enveloped)):
        layout = layout_of(settings({"type": "Field", "fields": [name]}, envelope=envelope))
        assert [layout.column(label) for label in layout.columns] == [expected]


TIME: dict[str, Any] = {"timezone": "UTC", "timestampExtractor": "RecordField", "timestampField": "at"}
PATTERN: dict[str, Any] = {"type": "Time", "pathFormat": "YYYY"}


@pytest.mark.parametrize(
    ("partitioner", "envelope", "expected"),
    [
        ({"type": "Hourly", **TIME}, False, TimeColumn("at", is_hourly=True)),
        ({"type": "Daily", **TIME}, True, TimeColumn("value.at", is_hourly=False)),
        ({**PATTERN, "duration": "10m", **TIME}, False, TimeColumn("at", is_hourly=True)),
        ({**PATTERN, "duration": "6h", **TIME}, False, TimeColumn("at", is_hourly=False)),
        ({"type": "Daily", **TIME, "timestampField": "$header.at"}, True, None),
        ({"type": "Daily", **TIME, "timestampExtractor": "Record"}, True, TimeColumn("timestamp", is_hourly=False)),
        ({"type": "Daily", **TIME, "timestampExtractor": "Record"}, False, None),
        ({"type": "Daily", **TIME, "timestampExtractor": "Wallclock"}, True, None),
        ({"type": "Field", "fields": ["k"], **TIME}, False, None),
    ],
)
def test_the_time_of_a_path_is_a_column_of_the_rows_or_of_none(
    partitioner: dict[str, Any], envelope: bool, expected: TimeColumn | None
) -> None:
    assert layout_of(settings(partitioner, envelope=envelope)).time == expected
