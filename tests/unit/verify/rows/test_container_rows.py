"""Rows of Avro and Parquet objects, and the types that count when schemas are compared."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink_job.avro.schema import parse_avro
from sink_job.verify.object_reader import ObjectUnreadable
from sink_job.verify.rows.canonical_values import canonical
from sink_job.verify.rows.container_rows import BATCH, ContainerRows, avro_text, parquet_text, with_enums

FIELDS: list[dict[str, Any]] = [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]
SCHEMA = {"type": "record", "name": "r", "fields": FIELDS}
ROWS = [{"n": n, "s": None if n % 3 else "x"} for n in range(BATCH + 10)]


def test_both_formats_give_the_same_canonical_values() -> None:
    avro, parquet = io.BytesIO(), io.BytesIO()
    fastavro.writer(avro, SCHEMA, ROWS, sync_interval=1 << 20)
    pq.write_table(pa.Table.from_pylist(ROWS), parquet)
    avro.seek(0)
    of_avro = [*ContainerRows.of_avro(avro).batches]
    assert max(map(len, of_avro)) == BATCH
    of_parquet = [*ContainerRows.of_parquet(pa.BufferReader(parquet.getvalue())).batches]
    assert [row for batch in of_avro for row in batch] == [row for batch in of_parquet for row in batch]
    assert of_avro[0][0] == canonical(ROWS[0])


def test_what_is_no_file_of_its_format_is_unreadable() -> None:
    with pytest.raises(ObjectUnreadable):
        ContainerRows.of_avro(io.BytesIO(b"no Avro"))
    with pytest.raises(ObjectUnreadable, match="not a valid Parquet file"):
        ContainerRows.of_parquet(pa.BufferReader(b"no Parquet"))


def test_documentation_and_the_order_of_fields_are_no_types_of_avro() -> None:
    other = {**SCHEMA, "doc": "d", "connect.name": "x", "fields": [{**each, "doc": "d"} for each in FIELDS[::-1]]}
    wider = {**SCHEMA, "fields": [{"name": "n", "type": "int"}, FIELDS[1]]}
    timed = {
        **SCHEMA,
        "fields": [{"name": "n", "type": {"type": "long", "logicalType": "timestamp-millis"}}, FIELDS[1]],
    }
    texts = [avro_text(parse_avro(json.dumps(each))) for each in (SCHEMA, other, wider, timed)]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3


def test_a_type_of_avro_can_contain_itself() -> None:
    node = {"type": "record", "name": "n", "fields": [{"name": "next", "type": ["null", "n"]}]}
    assert '"n"' in avro_text(parse_avro(json.dumps(node)))


def test_metadata_names_of_list_items_and_the_order_of_columns_are_no_types_of_parquet() -> None:
    def schema(*fields: pa.Field) -> str:
        return parquet_text(pa.schema(fields))

    items, others = pa.list_(pa.field("item", pa.int32())), pa.list_(pa.field("array", pa.int32()))
    one = pa.field("m", pa.map_(pa.string(), pa.struct([pa.field("x", pa.int64())])))
    assert schema(pa.field("l", items, metadata={"a": "b"}), one) == schema(one, pa.field("l", others))
    assert schema(pa.field("l", items)) != schema(pa.field("l", pa.list_(pa.int64())))
    assert schema(pa.field("l", items)) != schema(pa.field("l", items, nullable=False))


def test_enums_of_parquet_java_are_strings() -> None:
    """pyarrow cannot write them: a column of the type ENUM is one of the names that the file's schema gives."""

    class Column:
        def __init__(self, path: str, kind: str) -> None:
            self.path, self.logical_type = path, type("Kind", (), {"type": kind})

    class Columns:
        names = ("e", "b", "e", "array")

        def column(self, number: int) -> Column:
            given = [("e", "ENUM"), ("b", "NONE"), ("s.e", "ENUM"), ("l.array", "ENUM")]
            return Column(*given[number])

    binary = pa.binary()
    schema = pa.schema(
        [("e", binary), ("b", binary), ("s", pa.struct([("e", binary), ("n", pa.int32())])), ("l", pa.list_(binary))]
    )
    text = pa.string()
    assert with_enums(schema, cast("Any", Columns())) == pa.schema(
        [("e", text), ("b", binary), ("s", pa.struct([("e", text), ("n", pa.int32())])), ("l", pa.list_(text))]
    )
