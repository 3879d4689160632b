"""The encoding of each column of a row group, chosen from a sample of its values.

The writer of Arrow collects up to 1 MiB of distinct values for a dictionary before it gives up, and what it has written
until then is larger than the values. So a column has a dictionary only if the sample says that it becomes smaller.
Integers and times without one are deltas (DELTA_BINARY_PACKED) if these are smaller. The choice depends on the values
alone (P3). Floats are never split by bytes: Spark 4.2 cannot read that (ADR 36).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sink_job.arrow.arrays import Integers
from sink_job.parquet.statistics import Leaf, array_size, leaves

DELTA: Final = "DELTA_BINARY_PACKED"
SAMPLE: Final = 4096
"""Values that are examined of a column: one of each stratum."""
SAMPLE_BYTES: Final = 1 << 20
"""Their maximum size: fewer ones of long texts are examined."""
DICTIONARY_BYTES: Final = 1 << 20
"""The maximum size of a dictionary."""
_NEAR: Final = (0.5, 2.0)
"""Between these multiples of DICTIONARY_BYTES an estimate decides too much: the distinct values are counted."""
_FEW_BITS: Final = 8
"""Indexes of a dictionary of this size are not compared with deltas."""
_RUN: Final = 513
"""Adjacent values whose deltas are examined: 512 deltas are four blocks of DELTA_BINARY_PACKED."""
_RUNS: Final = 4
_BLOCK: Final = 128
_MINIBLOCKS: Final = 4
_BLOCK_HEADER: Final = 72
"""Bits before a block: its minimum, and a byte for each of its miniblocks."""


@dataclass(frozen=True)
class Encodings:
    """The paths of the columns with a dictionary, and the encodings of others that are not plain."""

    dictionaries: list[str]
    encodings: dict[str, str]


def column_encodings(table: pa.Table, *, dictionary: bool, compresses: bool) -> Encodings:
    """The encodings of the columns of `table`, which is a row group. Enums always have dictionaries, others only with
    `dictionary`. `compresses`: pages are compressed. Names can contain dots: columns with the same path are plain or
    have dictionaries, and their types may differ."""
    found = [
        leaf for name, column in zip(table.column_names, table.columns, strict=True) for leaf in leaves(name, column)
    ]
    counts = Counter(leaf.path for leaf in found)
    chosen = Encodings([], {})
    for leaf in found:
        if pa.types.is_dictionary(leaf.type):
            chosen.dictionaries.append(leaf.path)
        elif counts[leaf.path] > 1:
            chosen.dictionaries.extend([leaf.path] if dictionary else [])
        elif not pa.types.is_boolean(leaf.type):
            _choose(leaf, chosen, dictionary=dictionary, compresses=compresses)
    return chosen


def _choose(leaf: Leaf, chosen: Encodings, *, dictionary: bool, compresses: bool) -> None:
    count = sum(map(len, leaf.arrays))
    if not count or sum(array.null_count for array in leaf.arrays) == count:  # often hundreds of columns
        chosen.dictionaries.extend([leaf.path] if dictionary else [])
        return
    size = sum(map(array_size, leaf.arrays))
    width = 8 * size / max(1, count)
    of_dictionary = _dictionary_bits(leaf, count, width) if dictionary else None
    smallest = width if of_dictionary is None else min(width, of_dictionary)
    if _is_integer(leaf.type) and smallest > _FEW_BITS:
        deltas, plain = _delta_bits(leaf, count, compresses=compresses)
        if deltas < min(smallest, plain):
            chosen.encodings[leaf.path] = DELTA
            return
        smallest = min(smallest, plain)
    if of_dictionary is not None and of_dictionary <= smallest:
        chosen.dictionaries.append(leaf.path)


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _dictionary_bits(leaf: Leaf, count: int, width: float) -> float | None:
    """The bits of a value with a dictionary; None if the dictionary is larger than the writer allows."""
    sampled = _values_at(_sample(count, width), _storages(leaf))
    present = sampled.drop_null()
    if not len(present):
        return 0.0
    times = present.value_counts().field("counts").to_numpy(zero_copy_only=False)
    total = max(1, round(count * len(present) / len(sampled)))
    distinct = _distinct(times, total, is_all=len(sampled) == count)
    per_value = width * count / total
    size = distinct * per_value / 8 / DICTIONARY_BYTES
    if _NEAR[0] < size < _NEAR[1] and len(times) < len(present) < count:
        distinct = pc.count_distinct(pa.chunked_array(_storages(leaf), type=_storage_type(leaf.type))).as_py()
    if distinct * per_value > 8 * DICTIONARY_BYTES:
        return None
    return (distinct * per_value / total + max(1, int(distinct - 1).bit_length())) * total / count


def _distinct(times: Integers, total: int, *, is_all: bool) -> int:
    """The distinct values of a column with `total` values, of a sample in which they occur `times`: the bias-corrected
    estimator of Chao (1984), from the values that occur once and twice."""
    if is_all:
        return len(times)
    once, twice = int((times == 1).sum()), int((times == 2).sum())
    return min(total, len(times) + once * (once - 1) // (2 * (twice + 1)))


def _sample(count: int, width: float) -> Integers:
    """The numbers of the values of a sample: an arbitrary one of each stratum. At equal distances, a sequence that
    repeats, as of devices that are read in turn, would have no value twice."""
    size = min(SAMPLE, max(16, int(8 * SAMPLE_BYTES / max(1.0, width))))
    if count <= size:
        return np.arange(count, dtype=np.int64)
    step = count // size
    mixed = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # SplitMix64 (Steele et al., 2014)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.arange(size, dtype=np.int64) * step + (mixed % np.uint64(step)).astype(np.int64)


def _values_at(numbers: Integers, arrays: list[pa.Array]) -> pa.Array:
    """The values with these ascending numbers. Arrow's `take` of a chunked array copies all of its values.

    >>> _values_at(np.array([0, 3, 4]), [pa.array([10, 11, 12]), pa.array([13, 14])]).to_pylist()
    [10, 13, 14]
    """
    found, start = [], 0
    for array in arrays:
        low, high = np.searchsorted(numbers, (start, start + len(array)))
        found.append(array.take(pa.array(numbers[low:high] - start)))
        start += len(array)
    return pa.concat_arrays(found)


def _delta_bits(leaf: Leaf, count: int, *, compresses: bool) -> tuple[float, float]:
    """The bits of a value as deltas, and as a plain value that is compressed."""
    values = pa.chunked_array(_storages(leaf), type=_storage_type(leaf.type))
    starts = sorted({max(0, min(count - _RUN, n * count // _RUNS)) for n in range(_RUNS)})
    runs = [values.slice(start, _RUN).drop_null().combine_chunks().to_numpy(zero_copy_only=False) for start in starts]
    length = sum(map(len, runs))
    if length < 2:
        return float("inf"), 0.0
    plain = b"".join(run.tobytes() for run in runs)
    if compresses:
        plain = pa.Codec("snappy").compress(plain, asbytes=True)
    present = length / max(1, sum(min(_RUN, count - start) for start in starts))
    return sum(map(_packed_bits, runs)) / length * present, 8 * len(plain) / length * present


def _packed_bits(values: npt.NDArray[np.integer]) -> float:
    """The bits of values as DELTA_BINARY_PACKED (parquet-format, Encodings.md)."""
    with np.errstate(over="ignore"):
        deltas = np.diff(values.astype(np.int64))
        if not len(deltas):
            return 64.0
        deltas = np.pad(deltas, (0, -len(deltas) % _BLOCK), mode="edge").reshape(-1, _BLOCK)
        above = (deltas - deltas.min(1, keepdims=True)).view(np.uint64).reshape(len(deltas), _MINIBLOCKS, -1).max(2)
    bits = np.ceil(np.log2(above.astype(np.float64) + 1))
    return float(bits.sum() * _BLOCK / _MINIBLOCKS + _BLOCK_HEADER * len(deltas)) * len(values) / deltas.size


def _storage_type(kind: pa.DataType) -> pa.DataType:
    """The type whose values are examined: integers instead of times, bytes instead of UUIDs."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _storages(leaf: Leaf) -> list[pa.Array]:
    target = _storage_type(leaf.type)
    if isinstance(leaf.type, pa.BaseExtensionType):
        return [each.storage for each in leaf.arrays]
    return leaf.arrays if target == leaf.type else [each.view(target) for each in leaf.arrays]
