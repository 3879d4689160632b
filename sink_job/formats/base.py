"""The interfaces of output formats: of rows, and of the objects around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from sink_job.formats.block_rows import BlockRows


@dataclass(frozen=True, slots=True)
class Block:
    """An encoded block: its bytes in the object, and what the footer needs of it (empty if there is no footer)."""

    data: bytes
    index: bytes = b""


class ObjectEncoder(Protocol):
    """Encodes the content of one object."""

    block_size: int
    """Bytes of rows, with the lengths of datums, at which a block ends, with the first row at or past them; 0: every
    row is a block."""
    is_container: bool
    """Whether the object has a header, and its rows are datums. A part of such an object ends at exactly the part size:
    its end need not be the end of a row, and a block may be larger than a part."""

    def header(self) -> bytes:
        """The bytes before the first block."""
        ...

    def block(self, rows: BlockRows, position: int) -> Block:
        """Encodes the rows of one block that begins `position` bytes after the start of the object."""
        ...

    def footer(self, indexes: Sequence[bytes]) -> bytes:
        """The bytes after the last block; `indexes` are those of all blocks, in order."""
        ...


class RowEncoder(Protocol):
    """Encodes the rows of an object. Their concatenation is the object's content before compression."""

    prefix_bytes: int
    """Bytes of a row that `encode` leaves out, but that count: the length of a datum."""

    def encode(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of `values`, the result of the sink's converter. No value may be null."""
        ...
