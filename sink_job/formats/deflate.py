"""DEFLATE by ISA-L. The bytes depend on the data, the level and the version of the library alone (P3).

Data are compressed as a stream. ISA-L's way for a single call (`igzip.compress`, `isal_zlib.compress`) writes other
bytes in about one process of a hundred, for data of a few hundred bytes (isal 1.9.1): they depend on the addresses of
the process.
"""

from __future__ import annotations

from typing import Any, Final

import isal
from isal import isal_zlib

LIBRARY: Final = f"isal {isal.__version__} stream"
"""The library with its version: another one may write other bytes."""

GZIP: Final = 31
"""A gzip member, with the time 0."""
RAW: Final = -15
"""DEFLATE without head and checksum."""

_isal: Any = isal_zlib  # its annotations are not complete


def deflate(data: bytes, level: int, form: int) -> bytes:
    """The compressed data. `level` is ISA-L's: 0 (fastest) to 3; `form` is GZIP or RAW."""
    stream = _isal.compressobj(level, _isal.DEFLATED, form)
    compressed: bytes = stream.compress(data) + stream.flush()
    return compressed
