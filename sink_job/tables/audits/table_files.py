"""The live files of a branch of a table, read from its manifests one entry at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyiceberg.avro.file import AvroFile
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table import Table
from pyiceberg.types import LongType

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.audit import canonical
from sink_job.tables.audits.file_index import FileIndex, TableFile
from sink_job.tables.partitions.partition_audit import PartitionReader
from sink_job.tables.plan import head_of


@dataclass(frozen=True)
class OtherFile:
    """A data file that is no object of the sink. `offsets`: the lowest and highest offset of its rows, if known."""

    path: str
    records: int
    is_parquet: bool
    offsets: tuple[int, int] | None


class TableFiles:
    """The files of a branch; each iteration reads the manifests. Raises TableNotRegistered for files with deletes."""

    def __init__(self, table: Table, branch: str, partitions: PartitionReader) -> None:
        self._table = table
        self._branch = branch
        self._partitions = partitions

    def __iter__(self) -> Iterator[TableFile]:
        for file in self._files():
            found = self._partitions.read(file)
            texts = tuple(found.texts.items())
            yield TableFile(canonical(file.file_path), file.record_count, file.file_size_in_bytes, texts, found.problem)

    def others(self, index: FileIndex, offset_id: int) -> Iterator[OtherFile]:
        """Those outside of the sink's prefixes that are not objects, when all objects were looked up in `index`.
        `offset_id` is the field id of the offset in rows."""
        for file in self._files():
            path = canonical(file.file_path)
            if not path.startswith(index.own) and not index.is_found(path):
                low, high = _bound(file.lower_bounds, offset_id), _bound(file.upper_bounds, offset_id)
                offsets = None if low is None or high is None else (low, high)
                yield OtherFile(path, file.record_count, file.file_format is FileFormat.PARQUET, offsets)

    def _files(self) -> Iterator[DataFile]:
        head = head_of(self._table.metadata, self._branch)
        snapshot = None if head is None else self._table.snapshot_by_id(head)
        for manifest in () if snapshot is None else snapshot.manifests(self._table.io):
            for file in self._live(manifest):
                if file.content is not DataFileContent.DATA:
                    raise TableNotRegistered(
                        f"table {'.'.join(self._table.name())} has files with deletes, such as {file.file_path}: its "
                        "records cannot be verified. Rewrite the data files, so that the deletes are applied"
                    )
                yield file

    def _live(self, manifest: ManifestFile) -> Iterator[DataFile]:
        """The live files of a manifest. PyIceberg's `fetch_manifest_entry` has all of them in memory, with their
        statistics."""
        with AvroFile[ManifestEntry](
            self._table.io.new_input(manifest.manifest_path),
            MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as entries:
            for entry in entries:
                if entry.status != ManifestEntryStatus.DELETED:
                    entry.data_file.spec_id = manifest.partition_spec_id
                    yield entry.data_file


def _bound(bounds: Mapping[int, bytes] | None, number: int) -> int | None:
    value = (bounds or {}).get(number)
    return None if value is None or len(value) != 8 else int(from_bytes(LongType(), value))
