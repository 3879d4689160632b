"""The fuzzer's child process with a broken converter named "Bytes": `-m …broken_converter FAULT CONVERTER SEED …`.

The batch with the number 0 has the fault.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable

import pyarrow as pa

from devtools.fuzz import child, targets
from sink_job.converters.base import BatchSource, Converted
from sink_job.plain.bytes import BytesConverter


class Panic(BaseException):
    """As the exception for a panic in Rust."""


def _panic() -> None:
    raise Panic


def _segfault() -> None:
    ctypes.string_at(0)


def _allocate() -> None:
    _ = bytearray(1 << 40)


def _wait() -> None:
    time.sleep(10_000)


FAULTS: dict[str, Callable[[], None]] = {
    "panic": _panic,
    "segfault": _segfault,
    "memory": _allocate,
    "hang": _wait,
}


class Broken(BytesConverter):
    """Has the fault in its first batch."""

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        FAULTS[FAULT]()
        return super().convert(values, source)


if __name__ == "__main__":
    FAULT = sys.argv.pop(1)
    if sys.argv[3] == "0":
        targets.converter_for = lambda _, fields, **__: Broken(fields)  # type: ignore[attr-defined]
    child.main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
