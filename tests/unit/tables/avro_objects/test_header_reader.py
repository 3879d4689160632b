"""What a table gets of an Avro object, and what proves that the object is there."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import TableIncompatible, TableNotRegistered
from sink_job.avro.container import AvroCodec, AvroContainer
from sink_job.ledger.state import ClosedObject
from sink_job.tables.avro_objects.header_reader import FIRST_READ, AvroHeaderReader
from sink_job.tables.files import ObjectFooter
from tests.support.memory_s3 import MemoryS3
from tests.unit.avro.avro_data import record
from tests.unit.tables.parquet_objects import listed

KEY = "topics/log/a.avro"
SCHEMA = record(("id", "long"), ("name", ["null", "string"]))


def content(schema: Any = SCHEMA, key: str = KEY, codec: str = "null") -> bytes:
    """An object without blocks."""
    return AvroContainer(json.dumps(schema), key, AvroCodec(codec, None), block_size=1).header()


class Stored:
    """An object in the store, and the requests for it."""

    def __init__(self, data: bytes) -> None:
        self.s3 = MemoryS3()
        self.s3.put(KEY, data)
        self.object = listed(KEY, data, 7)
        self.requests: list[str] = []
        self.s3.fault = lambda call, key: self.requests.append(call)

    def read(self, o: ClosedObject | None = None) -> ObjectFooter:
        s3: Any = self.s3
        return AvroHeaderReader(s3).read(o or self.object)


def test_an_entry_has_the_size_and_the_number_of_records_of_the_ledger() -> None:
    stored = Stored(content() + b"blocks")
    found = stored.read()
    assert found.fields["file_path"] == f"s3://archive/{KEY}"
    assert (found.fields["record_count"], found.fields["file_size_in_bytes"]) == (7, len(content()) + 6)
    assert [each.name for each in found.columns.schema.fields] == ["id", "name"]
    assert found.columns.by_name
    assert stored.requests == ["head", "get_range"]


def test_a_long_header_is_read_in_further_steps() -> None:
    stored = Stored(content(record(*((f"column_{n}", "long") for n in range(10_000)))) + bytes(FIRST_READ * 20))
    assert len(stored.read().columns.schema.fields) == 10_000
    assert 2 < len(stored.requests) < 20


def test_objects_with_the_same_schema_share_their_columns() -> None:
    stored = Stored(content())
    s3: Any = stored.s3
    reader = AvroHeaderReader(s3)
    assert reader.read(stored.object).columns is reader.read(stored.object).columns


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (content(key="topics/log/b.avro"), "its sync marker is that of another object"),
        (b"{  }", "the object is not an Avro object container file"),
        (content()[:40], "the object ends within a block"),
        (b"Obj\x01\x02\xfe\xff\xff\xff\x07", "a length in its header is damaged"),
        (content(codec="lzo"), "the object has the unknown Avro codec lzo"),
    ],
    ids=["another key", "no Avro", "short", "damaged", "codec"],
)
def test_an_object_that_is_not_one_of_the_sink_is_rejected(data: bytes, reason: str) -> None:
    with pytest.raises(TableNotRegistered) as error:
        Stored(data).read()
    assert f"s3://archive/{KEY} is not as the ledger says: {reason}" in str(error.value)


@pytest.mark.parametrize("change", [{"bytes": 5}, {"crc": 1}])
def test_an_object_of_another_size_or_content_is_rejected(change: dict[str, int]) -> None:
    stored = Stored(content())
    with pytest.raises(TableNotRegistered, match=r"is not as the ledger says: .* in the ledger"):
        stored.read(msgspec.structs.replace(stored.object, **change))


def test_an_object_that_is_gone_is_named() -> None:
    stored = Stored(content())
    stored.s3.delete([KEY])
    with pytest.raises(TableNotRegistered, match=rf"s3://archive/{KEY} does not exist any more"):
        stored.read()


def test_a_schema_that_is_none_is_rejected() -> None:
    with pytest.raises(TableIncompatible, match="has a schema that cannot be read"):
        Stored(content({"type": "unknown"})).read()
