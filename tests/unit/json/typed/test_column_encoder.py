"""Bare JSON under a schema: column-wise and row-wise, the same data, rejections and dropped properties."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sink_job.api.enums import UnknownFields
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.json.typed import datums as typed_datums
from sink_job.json.typed.converter import JsonValuesConverter
from tests.unit.avro.avro_data import Table

SCHEMA = """
- {name: n, type: int64, optional: true}
- {name: x, type: float64, optional: true}
- {name: s, type: string}
- {name: j, type: json, optional: true}
- {name: at, type: timestamp-millis, optional: true}
- {name: local, type: local-timestamp-micros, optional: true}
- {name: day, type: date, optional: true}
- {name: price, type: 'decimal(6, 2)', optional: true}
- {name: o, optional: true, fields: [{name: a, type: int64, optional: true}, {name: b, type: json, optional: true}]}
- {name: l, optional: true, items: {optional: true, fields: [{name: a, type: boolean}]}}
- {name: m, optional: true, values: {type: int64}}
"""
ROWS = 12
TEXTS = st.sampled_from(["", "ü", '"', "1", "2013-01-31", "2013-01-31T00:00:00Z", "2013-01-31T00:00:00.123456"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([1.5, -0.0, 2**63, 1e300]) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abz"), inner, max_size=2),
    max_leaves=4,
)
FITTING = {
    "n": st.integers(-9, 9) | st.none(),
    "x": st.sampled_from([1.5, -0.0, 7]),
    "s": TEXTS,
    "j": JSON,
    "at": st.sampled_from([0, "2013-01-31T00:00:00Z", "2013-01-31 01:02:03+01:00"]),
    "local": st.sampled_from([1, "2013-01-31T00:00:00.123456"]),
    "day": st.sampled_from([1, "2013-01-31"]),
    "price": st.sampled_from([1, 1.25, None]),
    "o": st.fixed_dictionaries({}, optional={"a": st.integers(0, 9), "b": JSON}),
    "l": st.lists(st.none() | st.fixed_dictionaries({"a": st.booleans()}), max_size=3),
    "m": st.dictionaries(TEXTS, st.integers(0, 9), max_size=2),
}
VALUES = st.fixed_dictionaries(
    {"s": FITTING["s"]}, optional={name: each for name, each in FITTING.items() if name != "s"}
)
ODD = {"_unknown": JSON, "z": JSON, "o": JSON, "l": JSON, "s": JSON, "n": JSON, "at": JSON}


@st.composite
def batches(draw: st.DrawFn) -> list[bytes]:
    """Texts of values, some of which have properties of other types or unknown ones."""
    values: list[Any] = draw(st.lists(VALUES, min_size=ROWS, max_size=ROWS))
    for row in draw(st.lists(st.integers(0, ROWS - 1), max_size=3)):
        name = draw(st.sampled_from(sorted(ODD)))
        values[row][name] = draw(ODD[name])
    return [json.dumps(value).encode() for value in values]


@contextmanager
def min_rows(number: int) -> Iterator[None]:
    """Fewer rows are read row-wise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typed_datums, "MIN_ROWS", number)
        yield


def convert(texts: list[bytes], unknown: UnknownFields, fields: tuple[str, ...] = ()) -> Converted:
    datums = DatumSettings()
    table = Table({"1": RegisteredSchema("1", "FIELDS", SCHEMA)})
    settings = SchemaSettings(table, bare_values="1", datums=datums, unknown=unknown)
    return JsonValuesConverter(fields, settings, datums).convert(pa.array(texts, pa.binary()), BatchSource("t"))


def accepted(found: Converted) -> list[bytes]:
    mask = np.ones(len(found.values), np.bool_)
    mask[[row for row, _ in found.rejected]] = False
    return [value for value, is_accepted in zip(found.values.to_pylist(), mask, strict=True) if is_accepted]


@given(batches(), st.sampled_from(UnknownFields))
@example([b'{"s": "", "_unknown": null}', *[b'{"s": ""}'] * ROWS], UnknownFields.JSON)
def test_values_are_the_same_by_column_and_one_by_one(texts: list[bytes], unknown: UnknownFields) -> None:
    with min_rows(2):
        found = convert(texts, unknown)
    with min_rows(1 << 60):
        expected = convert(texts, unknown, ("s",))  # with a field, no value is taken for valid before it was checked
    assert accepted(found) == accepted(expected)
    assert (found.rejected, found.dropped_properties) == (expected.rejected, expected.dropped_properties)


def test_texts_with_dates_json_and_unknown_columns_are_read_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(*given: object) -> None:
        raise AssertionError("a text is read row-wise")

    monkeypatch.setattr(typed_datums.JsonDatums, "_one_by_one", one_by_one)
    text = b'{"s": "", "j": [1], "at": "2013-01-31T00:00:00Z", "day": "2013-01-31", "o": {"a": 1, "b": "x"}}'
    for unknown in UnknownFields:
        found = convert([text] * ROWS, unknown)
        assert found.rejected == []
        assert len(set(found.values.to_pylist())) == 1
