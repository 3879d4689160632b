"""CPU time from values to the rows of Parquet objects, and from rows to a row group, on one core.

`python -m bench.datums [--repeat 5]` prints a table. Values have the content and the wire format of `bench.converters`.
Each figure is the best of several turns: other processes on the machine can only make a turn slower.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from bench.converters import (
    BATCH_BYTES,
    BATCHES,
    LARGE_SCHEMA,
    SMALL_SCHEMA,
    Table,
    batches_of,
    cpu_seconds,
    large_value,
    small_value,
)
from sink_job.api.enums import CompressionCodec, ConverterType, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec, ParquetSpec
from sink_job.arrow import columns as arrow_columns
from sink_job.codecs.containers import container_encoder, datum_settings
from sink_job.codecs.converters import converter_for
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.formats.block_rows import BlockRows, lengths_of
from sink_job.json.typed import datums as typed_datums

PARQUET: Final = FormatSpec(output=OutputFormat.PARQUET, compression=CompressionSpec(codec=CompressionCodec.SNAPPY))
ROW_WISE: Final = "JsonSchema, row-wise"
CASES: Final = {
    "JsonSchema": ConverterType.JSON_SCHEMA,
    ROW_WISE: ConverterType.JSON_SCHEMA,
    "Avro": ConverterType.AVRO,
    "Protobuf": ConverterType.PROTOBUF,
}


class Rates(NamedTuple):
    """The mean size of a value in bytes, and MB of values per second of one core: to rows, and from rows to a row
    group."""

    size: int
    to_rows: float
    to_row_group: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--repeat", type=int, default=5)
    repeat = arguments.parse_args().repeat
    print("| values | converter | B a value | values to rows, MB/s | rows to a row group, MB/s of values |")
    print("|---|---|---|---|---|")
    for size, name in itertools.product(("100 B", "1 KB"), CASES):
        found = measure(name, large=size == "1 KB", repeat=repeat)
        print(f"| {size} | {name} | {found.size} | {found.to_rows:.0f} | {found.to_row_group:.0f} |", flush=True)


def measure(name: str, *, large: bool, repeat: int) -> Rates:
    typed_datums.MIN_ROWS = 1 << 60 if name == ROW_WISE else 8
    kind = CASES[name]
    batches, settings = _json_batches(large) if kind is ConverterType.JSON_SCHEMA else batches_of(kind, large=large)
    assert settings is not None
    schemas = replace(settings, datums=datum_settings(PARQUET), output=OutputFormat.PARQUET)
    converter = converter_for(kind, (), output=OutputFormat.PARQUET, schemas=schemas)
    found: list[Converted] = []

    def convert() -> None:
        found[:] = [converter.convert(batch, BatchSource("bench")) for batch in batches]

    to_rows = min(cpu_seconds(convert) for _ in range(repeat))
    assert not any(each.rejected for each in found), "the values are valid"
    size = sum(batch.nbytes - 4 * (len(batch) + 1) for batch in batches)
    to_row_group = _row_group_seconds(found, size, repeat)
    return Rates(size // sum(map(len, batches)), size / 1e6 / to_rows, size / 1e6 / to_row_group)


def _row_group_seconds(found: list[Converted], size: int, repeat: int) -> float:
    """The seconds for the rows of `size` bytes of values, in a row group of the default size."""
    assert found[0].schemas is not None
    encoder = container_encoder(PARQUET, found[0].schemas.schemas[0])("key")
    rows = pa.concat_arrays([each.values for each in found])
    times = (PARQUET.parquet or ParquetSpec()).row_group // BlockRows.of(rows).size + 1
    content, lengths = arrow_columns.text(rows), lengths_of(arrow_columns.bounds(rows)) * times

    def encode() -> None:
        encoder.block(BlockRows([content] * times, lengths), 4)

    return min(cpu_seconds(encode) for _ in range(repeat)) / times


def _json_batches(large: bool) -> tuple[list[pa.BinaryArray], SchemaSettings]:
    rng, value = random.Random(1), large_value if large else small_value
    schema = json.dumps(_json_schema(LARGE_SCHEMA if large else SMALL_SCHEMA))
    settings = SchemaSettings(Table(RegisteredSchema("1", "JSON", schema)), WireFormat(Layout.CONFLUENT))
    count = BATCH_BYTES // (1_000 if large else 100)
    texts = (json.dumps(value(rng, number), separators=(",", ":")).encode() for number in itertools.count())
    in_wire_format = (b"\0\0\0\0\1" + text for text in texts)
    return [pa.array(list(itertools.islice(in_wire_format, count)), pa.binary()) for _ in range(BATCHES)], settings


def _json_schema(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    required = [name for name, of in fields if not isinstance(of, list)]
    properties = {name: _property(of) for name, of in fields}
    return {"title": "Value", "type": "object", "properties": properties, "required": required}


_TYPES: Final = {"long": "integer", "double": "number"}


def _property(avro: Any) -> dict[str, Any]:
    match avro:
        case ["null", other]:
            return _property(other)
        case {"logicalType": "timestamp-millis"}:
            return {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp", "connect.type": "int64"}
        case {"type": "array", "items": items}:
            return {"type": "array", "items": _property(items)}
        case {"type": "map", "values": values}:
            return {"type": "object", "connect.type": "map", "additionalProperties": _property(values)}
        case {"type": "enum", "symbols": symbols}:
            return {"type": "string", "enum": symbols}
    return {"type": _TYPES.get(avro, avro)}


if __name__ == "__main__":
    main()
