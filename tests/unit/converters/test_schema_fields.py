"""Fields of values with a schema, which says what fields there are."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.connect.schema import Default, Field, Schema, SchemaType
from sink_job.converters.schema_fields import columns
from sink_job.records.fields import MISSING

LONG = Schema(SchemaType.INT64)


def struct(*fields: tuple[str, Schema], name: str | None = None, optional: bool = False) -> Schema:
    return Schema(SchemaType.STRUCT, name, optional, fields=tuple(Field(key, of) for key, of in fields))


INNER = struct(("b", Schema(SchemaType.INT64, optional=True)), ("d", Schema(SchemaType.INT64, default=Default("7"))))
SCHEMA = struct(("a", INNER), ("m", Schema(SchemaType.MAP, keys=Schema(SchemaType.STRING), values=LONG)), ("n", LONG))
NODE = struct(("n", LONG), ("next", Schema(SchemaType.REFERENCE, "Node", optional=True)), name="Node")


def column(name: str, *records: Any, schema: Schema = SCHEMA) -> list[object]:
    return columns(records, schema, (name,))[name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 5),
        ("a.b", 1),
        ("m.k", 2),
        ("m.other", MISSING),
        ("a", {"b": 1, "d": 9}),
        ("", {"a": {"b": 1, "d": 9}, "m": {"k": 2}, "n": 5}),
        ("absent", MISSING),
        ("a.absent", MISSING),
        ("n.absent", MISSING),
    ],
)
def test_a_field_is_found_by_its_dotted_name(name: str, value: object) -> None:
    assert column(name, {"a": {"b": 1, "d": 9}, "m": {"k": 2}, "n": 5}) == [value]


def test_a_field_that_the_schema_lacks_is_missing_also_where_a_value_has_it() -> None:
    assert column("x", {"x": 1}, None) == [MISSING, MISSING]


def test_a_field_below_null_is_null() -> None:
    assert column("a.b", {"a": None}, None, {"a": {"b": 3}}) == [None, None, 3]


def test_a_null_takes_the_default_of_its_schema() -> None:
    assert column("a.d", {"a": {"d": None}}, {"a": {"d": 1}}, {"a": None}) == [7, 1, None]


def test_a_record_that_is_missing_has_missing_fields() -> None:
    assert column("a.b", MISSING, {"a": 5}) == [MISSING, MISSING]


def test_a_reference_leads_to_the_fields_of_its_struct() -> None:
    record = {"n": 1, "next": {"n": 2, "next": {"n": 3, "next": None}}}
    assert column("next.next.n", record, schema=NODE) == [3]
    assert column("next.next.next.n", record, schema=NODE) == [None]
    assert column("next.absent", record, schema=NODE) == [MISSING]


def test_each_requested_field_has_a_value_for_each_record() -> None:
    assert columns([{"n": 1}, {"n": 2}], SCHEMA, ("n", "x")) == {"n": [1, 2], "x": [MISSING, MISSING]}
    assert columns([], SCHEMA, ("n",)) == {"n": []}
