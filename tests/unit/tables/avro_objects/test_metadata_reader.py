"""Objects of each format of a sink."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import FileFormat

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import TableNotRegistered
from sink_job.avro.container import sync_marker
from sink_job.tables.avro_objects.metadata_reader import MetadataReader
from sink_job.tables.files import DataFiles, ObjectGone
from tests.support.memory_s3 import MemoryS3
from tests.unit.codecs.typed_cases import CASES
from tests.unit.codecs.typed_objects import RECORDS, AvroColumns, object_of
from tests.unit.tables.parquet_objects import column, listed, parquet


def read(key: str, content: bytes, count: int) -> Any:
    """The entry of an object in a manifest."""
    s3: Any = MemoryS3()
    s3.put(key, content)
    footer = MetadataReader(s3, {}, lambda o, own: ()).read(listed(key, content, count))
    return DataFiles(footer.columns.schema).file(footer)


def test_each_object_has_the_format_of_its_name() -> None:
    of_parquet = read("topics/a.parquet", parquet([column(1, "a", pa.int32())], {"a": [1, 2]}), 2)
    data = object_of(AvroColumns([each for each in CASES if each.name == "int"]), OutputFormat.AVRO, "Snappy")
    of_avro = read("topics/a.avro", data.replace(sync_marker("topics/t/x"), sync_marker("topics/a.avro")), RECORDS)
    assert [(each.file_format, each.record_count) for each in (of_parquet, of_avro)] == [
        (FileFormat.PARQUET, 2),
        (FileFormat.AVRO, RECORDS),
    ]
    assert (of_parquet.lower_bounds.keys(), of_avro.lower_bounds, of_avro.value_counts) == ({1}, {}, {})


def test_an_object_of_another_format_is_rejected() -> None:
    with pytest.raises(TableNotRegistered, match=r"topics/a\.json\.gz is neither a Parquet nor an Avro object"):
        read("topics/a.json.gz", b"{}", 1)


@pytest.mark.parametrize("key", ["topics/a.parquet", "topics/a.avro"])
def test_an_object_that_does_not_exist_is_none_or_an_error(key: str) -> None:
    s3: Any = MemoryS3()
    reader = MetadataReader(s3, {}, lambda o, own: ())
    o = listed(key, b"x", 1)
    assert reader.find(o) is None
    with pytest.raises(ObjectGone, match=f"s3://archive/{key} does not exist any more.*onMissing: Skip"):
        reader.read(o)
    s3.put(key, b"y")
    with pytest.raises(TableNotRegistered, match="is not as the ledger says"):
        reader.find(o)
