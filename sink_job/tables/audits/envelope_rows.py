"""The topic, partition and offset of the rows of a Parquet file, from the columns of `format.envelope`.

Columns are found by their field ids, since a table may have renamed them. Only these columns are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sink_job.api.errors import TableNotRegistered
from sink_job.parquet.types import FIELD_ID
from sink_job.s3 import NotFound, PreconditionFailed, S3Client
from sink_job.verify.container_content import ObjectFile

COLUMNS: Final = ("topic", "partition", "offset")
"""The columns of an envelope that identify a record."""
_BATCH: Final = 1 << 16
_FETCH: Final = 1 << 20
"""Bytes of a column that are fetched together."""


class EnvelopeIds(NamedTuple):
    """The field ids of the columns."""

    topic: int
    partition: int
    offset: int


class RowBatch(NamedTuple):
    """Rows of a file: the partitions and offsets of those of the topic, and the number of those of other topics and of
    those without topic, partition or offset."""

    partitions: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    foreign: int = 0
    without: int = 0


class EnvelopeRows:
    """Reads the rows of a topic."""

    def __init__(self, ids: EnvelopeIds, topic: str) -> None:
        self._ids = ids
        self._topic = topic

    def read(self, s3: S3Client, key: str) -> Iterator[RowBatch]:
        """The rows of a file. Raises TableNotRegistered if it does not exist or is no Parquet file, and the errors of
        the store."""
        try:
            yield from self._read(ObjectFile(s3, key))
        except (NotFound, PreconditionFailed) as error:
            raise TableNotRegistered(
                f"{s3.url_of(key)} cannot be read: {error}. If the table was changed meanwhile, verify it again"
            ) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise TableNotRegistered(f"{s3.url_of(key)} is not a valid Parquet file: {error}") from error

    def _read(self, content: ObjectFile) -> Iterator[RowBatch]:
        file = pq.ParquetFile(pa.PythonFile(content, mode="r"), pre_buffer=False, buffer_size=_FETCH)
        names = self._names(file.schema_arrow)
        if names is None:
            none = np.zeros(0, dtype=np.int64)
            yield RowBatch(none, none, without=file.metadata.num_rows)
            return
        for batch in file.iter_batches(batch_size=_BATCH, columns=names, use_threads=False):
            yield self._rows(*(batch.column(name) for name in names))

    def _names(self, schema: pa.Schema) -> list[str] | None:
        """The names of the columns in the file; None if it lacks one.

        Raises ValueError if a field id or a name is there twice: readers differ in which column they read.
        """
        ids = {(each.metadata or {}).get(FIELD_ID): each.name for each in schema}
        if set(ids) == {None}:  # a file without field ids, which engines read by names
            return _unique(schema, COLUMNS) if set(COLUMNS) <= set(schema.names) else None
        found = [ids.get(str(number).encode()) for number in self._ids]
        names = [each for each in found if each is not None]
        given = [(each.metadata or {}).get(FIELD_ID) for each in schema]
        if repeated := [number for number in self._ids if given.count(str(number).encode()) > 1]:
            raise ValueError(f"it has several columns with the field id {repeated[0]}")
        return _unique(schema, names) if len(names) == len(found) else None

    def _rows(self, topics: pa.Array, partitions: pa.Array, offsets: pa.Array) -> RowBatch:
        valid = pc.and_(pc.and_(pc.is_valid(topics), pc.is_valid(partitions)), pc.is_valid(offsets))
        mine = pc.and_(valid, pc.fill_null(pc.equal(topics.cast(pa.string()), self._topic), fill_value=False))
        complete, chosen = valid.true_count, mine.true_count
        return RowBatch(
            _longs(partitions.filter(mine)),
            _longs(offsets.filter(mine)),
            foreign=complete - chosen,
            without=len(valid) - complete,
        )


def _unique(schema: pa.Schema, names: Collection[str]) -> list[str]:
    """The names, each of which is that of one column."""
    for each in names:
        if schema.names.count(each) > 1:
            raise ValueError(f"it has several columns with the name {each[:100]}")
    return list(names)


def _longs(values: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found
