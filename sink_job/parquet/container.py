"""Parquet files, row group by row group.

A block is encoded once, when its rows are complete, at its offset in the object. It is one row group, or several if its
columns are much larger than its rows. The writer of Arrow has no interface for that. But it takes its offsets from the
position of its stream: `_OffsetStream` moves there before the first row group, and keeps what is written after that.
The index of a block is the metadata of a file with its row groups alone; the footer is their concatenation. ADR 30 has
the alternatives.
"""

from __future__ import annotations

import io
import mmap
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.api.enums import CompressionCodec
from sink_job.api.sections.format_section import FormatSpec
from sink_job.engine.container_memory import release_free_memory
from sink_job.formats.base import Block
from sink_job.formats.block_rows import BlockRows
from sink_job.parquet.bloom_filters import bloom_filters
from sink_job.parquet.encodings import DICTIONARY_BYTES, column_encodings
from sink_job.parquet.statistics import columns_with_statistics, decoded_size
from sink_job.parquet.table_reader import ParquetTableReader

MAGIC: Final = b"PAR1"
GZIP_LEVEL: Final = 6
BROTLI_LEVEL: Final = 5
PAGE_BYTES: Final = 1 << 20
MAX_DECODED: Final = 1.5
"""The size of the columns at which a row group ends, in multiples of `block_size`. Columns of nulls and of small
integers are up to eight times as large as their rows."""
MUCH_LARGER: Final = 1.25
"""The size of the columns in multiples of that of their rows, above which free memory is released before they are
written. It costs CPU time: the system clears the pages of memory that it gives out again."""
WRITE_BATCH: Final = 1024
"""Records between two checks of the sizes of pages."""
_FOOTER_END: Final = struct.Struct("<I4s")
"""The length of the metadata, and the magic."""
_SKIPPED: Final = 1 << 30


@dataclass(frozen=True)
class ParquetCodec:
    """A compression of Arrow's writer and its level (None: the compression has no level)."""

    name: str
    level: int | None = None


class ParquetContainer:
    """Encodes an object as a Parquet file."""

    is_container = True

    def __init__(
        self,
        reader: ParquetTableReader,
        codec: ParquetCodec,
        *,
        block_size: int,
        dictionary: bool,
        bloom_filters: Collection[str] = (),
    ) -> None:
        """`block_size` are the bytes of rows at which a row group ends. `dictionary`: columns that become smaller by a
        dictionary have one. Those of enums always do. `bloom_filters`: the paths of columns with a Bloom filter."""
        self.block_size = block_size
        self._reader = reader
        self._codec = codec
        self._dictionary = dictionary
        self._bloom_filters = frozenset(bloom_filters)
        self._dictionary_bytes = max(DICTIONARY_BYTES, reader.symbols_size + 1)

    def header(self) -> bytes:
        return MAGIC

    def block(self, rows: BlockRows, position: int) -> Block:
        data, metadata = io.BytesIO(), []
        for columns, size in self._tables(rows):
            if size > MUCH_LARGER * rows.size:
                release_free_memory()  # what reading them took, before they are written
            metadata.append(self._row_group(data, pa.concat_tables(columns), position + data.tell()))
            columns.clear()  # they are as large as the rows, or larger
        return Block(data.getvalue(), _serialized(_joined(metadata)))

    def _tables(self, rows: BlockRows) -> Iterator[tuple[list[pa.Table], int]]:
        """The columns of each row group and their size in bytes: one, unless they are much larger than the rows."""
        tables, size = [], 0
        for batch in rows.take_batches():
            tables.append(self._reader.table(batch))
            size += decoded_size(tables[-1])
            if size >= MAX_DECODED * self.block_size:
                yield tables, size
                tables, size = [], 0
        if tables:
            yield tables, size

    def _row_group(self, data: io.BytesIO, table: pa.Table, position: int) -> pq.FileMetaData:
        """Appends a row group at `position` in the object to `data`. Returns its metadata."""
        stream = _OffsetStream(data)
        file = pa.PythonFile(stream, mode="w")
        writer = self._writer(file, table)
        stream.move(file, position)
        writer.write_table(table, row_group_size=len(table))
        writer.close()
        stream.remove_footer()
        return writer.writer.metadata

    def _writer(self, file: pa.PythonFile, table: pa.Table) -> Any:
        chosen = column_encodings(table, dictionary=self._dictionary, compresses=self._codec.name != "none")
        return pq.ParquetWriter(
            file,
            self._reader.arrow_schema,
            compression=self._codec.name,
            compression_level=self._codec.level,
            use_dictionary=chosen.dictionaries,
            column_encoding=chosen.encodings,
            write_statistics=columns_with_statistics(table) or False,
            write_page_index=True,
            store_schema=False,
            version="2.6",
            data_page_version="1.0",
            data_page_size=PAGE_BYTES,
            dictionary_pagesize_limit=self._dictionary_bytes,
            write_batch_size=WRITE_BATCH,
            bloom_filter_options=bloom_filters(table, self._bloom_filters, block_size=self.block_size),
        )

    def footer(self, indexes: Sequence[bytes]) -> bytes:
        return _serialized(_joined(pq.read_metadata(io.BytesIO(index)) for index in indexes))[len(MAGIC) :]


def parquet_codec(settings: FormatSpec) -> ParquetCodec:
    """The codec of the settings. Raises ValueError for a compression that Parquet does not have."""
    codec = settings.compression.codec
    match codec:
        case CompressionCodec.NONE:
            return ParquetCodec("none")
        case CompressionCodec.SNAPPY:
            return ParquetCodec("snappy")
        case CompressionCodec.GZIP:
            return ParquetCodec("gzip", GZIP_LEVEL)
        case CompressionCodec.ZSTD:
            return ParquetCodec("zstd", settings.compression.chosen_level)
        case CompressionCodec.LZ4:
            return ParquetCodec("lz4")  # LZ4_RAW in the file
        case CompressionCodec.BROTLI:
            return ParquetCodec("brotli", BROTLI_LEVEL)
    raise ValueError(f"the output Parquet has no compression {codec}")


def _joined(metadata: Iterable[pq.FileMetaData]) -> pq.FileMetaData:
    """The metadata of a file with all row groups. One after the other: parsed metadata takes six times its bytes."""
    each = iter(metadata)
    first = next(each)
    for other in each:
        first.append_row_groups(other)
    return first


def _serialized(metadata: pq.FileMetaData) -> bytes:
    """A file without row groups' data: the magic, the metadata, its length, and the magic."""
    file = io.BytesIO()
    metadata.write_metadata_file(file)
    return file.getvalue()


@cache
def _nothing() -> pa.Buffer:
    """A buffer whose pages are never read or written, so that they take no memory."""
    return pa.py_buffer(mmap.mmap(-1, _SKIPPED, prot=mmap.PROT_READ))


class _OffsetStream:
    """A stream that discards what is written before `move`, and appends the rest to `data`."""

    closed = False

    def __init__(self, data: io.BytesIO) -> None:
        self._data = data
        self._keeps = False

    def move(self, file: pa.PythonFile, position: int) -> None:
        """Moves `file`, which writes to this stream, to `position`."""
        nothing = _nothing()
        while (left := position - file.tell()) > 0:
            file.write(nothing if left >= len(nothing) else nothing.slice(0, left))
        assert file.tell() == position, "a row group begins after the header"
        self._keeps = True

    def write(self, data: pa.Buffer | bytes) -> int:
        if self._keeps:
            return self._data.write(data)
        return data.size if isinstance(data, pa.Buffer) else len(data)

    def remove_footer(self) -> None:
        """Removes the footer at the end of what was written."""
        end = self._data.seek(-_FOOTER_END.size, io.SEEK_END)
        footer = _FOOTER_END.unpack(self._data.read())[0]
        self._data.truncate(self._data.seek(end - footer))

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
