"""Values at the edge of what outputs can express: each is written or rejected by name, and the records around it are
written. A value never fails its batch or its worker."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq
import pytest

from sink_job.api.enums import ConverterType as Of
from sink_job.api.enums import OutputFormat
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.arrow import columnar
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.schema_stores import SchemaStores
from tests.unit.avro.avro_data import Table
from tests.unit.rotation.settings import object_settings
from tests.unit.writer.edge_values import CASES, EDGES, MIB_10, TEXTS, Edge, ordinary
from tests.unit.writer.test_projection import WIRE_FORMAT, ProjectingPartition

JSON, BYTES, AVRO, PARQUET = OutputFormat.JSON, OutputFormat.BYTES, OutputFormat.AVRO, OutputFormat.PARQUET
PAIRS = [
    (converter, output)
    for converter in EDGES
    for output in ((JSON, BYTES, AVRO, PARQUET) if converter.has_schemas else (JSON, BYTES))
]
NULL, JSON_DEPTH = "the value is null, and errors.onNullValue is Fail", "the value is JSON nested too deeply"
DEPTH_256, TWICE = "the value is nested deeper than 256 levels", "a map in the value has a key twice"
INVALID_JSON = "the value is not JSON: invalid character (byte 6)"
TOO_LARGE = "the field n: the number 9223372036854775808 does not fit into 64 bits"

REJECTED: Final[Mapping[Of, Mapping[str, str]]] = {
    Of.JSON: {"null": NULL, "depth 1,000": JSON_DEPTH, "NaN": INVALID_JSON},
    Of.TEXT: {},
    Of.BYTES: {},
    Of.CBOR: {"null": NULL, "depth 1,000": DEPTH_256, "field twice": TWICE},
    Of.MESSAGE_PACK: {"null": NULL, "depth 1,000": DEPTH_256, "field twice": TWICE},
    Of.JSON_SCHEMA: {"null": NULL, "depth 1,000": JSON_DEPTH, "NaN": INVALID_JSON},
    Of.CONNECT_JSON: {
        "null": "a required value of type struct is null or missing",
        "depth 1,000": DEPTH_256,
        "NaN": 'the value is not an object of "schema" and "payload": JSON is malformed: invalid character',
        "2^63": TOO_LARGE,
    },
    Of.AVRO: {"null": NULL, "depth 1,000": "the value is nested deeper than 100 levels"},
    Of.PROTOBUF: {
        "null": NULL,
        "depth 1,000": "the value is not a valid Protobuf message: Exceeded upb_DecodeOptions_MaxDepth",
        "2^63": "the field n: 9223372036854775808 is outside the range of int64",
    },
}
"""The reasons for all outputs."""
NOT_IN_PARQUET: Final[Mapping[str, str]] = {
    "empty struct": "Parquet cannot express the whole value: the struct",
    "empty array": "Parquet requires a struct as the whole value, but its schema is array",
    "number": "Parquet requires a struct as the whole value, but its schema is int",
    "depth 1,000": "Parquet cannot express the field c: its schema is recursive",
}


def reason(converter: Of, output: OutputFormat, case: str) -> str | None:
    """Why a value must be rejected; None if it must be written."""
    if converter is Of.JSON_SCHEMA and output.has_datums and case == "2^63":
        return TOO_LARGE
    in_all = REJECTED[converter].get(case)
    if output is not PARQUET or case not in NOT_IN_PARQUET:
        return in_all
    if converter is Of.CONNECT_JSON and case == "depth 1,000":
        return in_all  # a schema cannot be recursive
    if converter is Of.PROTOBUF and case in ("empty array", "number"):
        return None  # they are fields of a message
    return NOT_IN_PARQUET[case]


@dataclass
class EdgePartition(ProjectingPartition):
    """A topic-partition with the schemas of some values."""

    edges: tuple[Edge, ...] = ()

    @property
    def pipeline(self) -> RecordPipeline:
        table = Table({each.schema.id: each.schema for each in self.edges if each.schema is not None})
        return RecordPipeline.of(self.object_settings, ErrorsSpec(), SchemaStores(table, self.schemas, self.field_ids))


def partition(converter: Of, output: OutputFormat, *edges: Edge) -> EdgePartition:
    sections = object_settings(
        format={"converter": str(converter), "output": str(output)},
        wire_format=WIRE_FORMAT if converter.needs_registry else None,
        rotation={"flushSize": 1000},
    )
    return EdgePartition(sections, tolerant=True, edges=edges)


@pytest.fixture(autouse=True, scope="module")
def by_column() -> Iterator[None]:
    """Also small batches are read column-wise, and row-wise where that is not possible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", 0)
        yield


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("converter", "output"), PAIRS, ids=[f"{one} to {other}" for one, other in PAIRS])
def test_a_value_is_written_or_rejected_by_name(converter: Of, output: OutputFormat, case: str) -> None:
    usual, edge = ordinary(converter), EDGES[converter](case)
    one = partition(converter, output, usual, edge)
    assert usual.value is not None
    rejected = one.round(0, [usual.value, edge.value, usual.value], close=True).rejected  # type: ignore[list-item]
    contents = [one.content(o) for o in one.named]
    expected = reason(converter, output, case)
    if output is BYTES:
        values = [usual.value, *([] if expected or edge.value is None else [edge.value]), usual.value]
        assert b"".join(contents) == b"".join(each + b"\n" for each in values)
    else:
        records = [record for content in contents for record in records_of(content, output)]
        assert len(records) == (2 if expected else 3)
        assert expected or is_written(converter, output, case, records[1])
    assert [expected is not None and expected in each.message for each in rejected] == [True] * (expected is not None)


def records_of(body: bytes, output: OutputFormat) -> list[Any]:
    """The records of an object; those of JSON are texts."""
    if output is AVRO:
        return list(fastavro.reader(io.BytesIO(body)))
    if output is PARQUET:
        rows: list[Any] = pq.read_table(io.BytesIO(body)).to_pylist()
        return rows
    return body.decode().splitlines()


def is_written(converter: Of, output: OutputFormat, case: str, record: Any) -> bool:
    """Whether a record of an object is the value of `case`."""
    if output is not JSON:
        return is_equal(record, value_of(converter, case))
    if converter in (Of.JSON, Of.JSON_SCHEMA):
        return bool(record == TEXTS[case])
    text = json.loads(record)
    if converter in (Of.TEXT, Of.BYTES):
        return bool((text if converter is Of.TEXT else base64.b64decode(text).decode()) == TEXTS[case])
    expected = value_of(converter, case)
    if case == "NaN":
        expected = {"x": "NaN"}
    if converter is Of.AVRO and case == "2^63":
        expected = {"n": base64.b64encode((2**63).to_bytes(9)).decode()}
    return is_equal(text, expected)


def value_of(converter: Of, case: str) -> Any:
    """The value that is written, without null and absent fields."""
    found = {
        "empty struct": {},
        "empty array": {"l": []} if converter is Of.PROTOBUF else [],
        "number": {"value": 5} if converter is Of.PROTOBUF else 5,
        "field twice": {"m": {"k": 2}} if converter is Of.AVRO else {"n": 2},
        "10 MB": {"s": MIB_10},
        "NaN": {"x": float("nan")},
        "minus zero": {"x": -0.0},
        "2^63": {"n": Decimal(2**63) if converter is Of.AVRO else 2**63},
        "empty map": {"m": {}},
    }
    return found[case]


def is_equal(found: Any, expected: Any) -> bool:
    """Compares the fields of `expected`; others are null, or have the default of Protobuf. A map can be a list."""
    if not isinstance(expected, dict):
        return bool(found == expected)
    plain = {name: dict(of) if name == "m" and of is not None else of for name, of in found.items()}
    others = [of for name, of in plain.items() if name not in expected]
    return all(repr(plain[name]) == repr(of) for name, of in expected.items()) and not any(others)
