"""Deliberate defects of the bytes of objects: containers, their schemas, and parts of one size; as in
`devtools.simulation.mutations`."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sink_job.avro import container as avro_container
from sink_job.connect.field_ids import numbered
from sink_job.formats import part_assembler
from sink_job.formats.base import ObjectEncoder
from sink_job.formats.part_assembler import NewBytes, PartAssembler
from sink_job.formats.remainder import Remainder
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.parquet.container import ParquetContainer
from sink_job.writer import object_writer
from sink_job.writer.container_schemas import ContainerSchemas

Patches = Sequence[AbstractContextManager[Any]]


def object_schemas_not_kept() -> Patches:
    """A task does not store the schema of an Avro or Parquet object that it opens."""
    return [patch.object(ContainerSchemas, "keep", lambda self, topic, object_schemas: None)]


def field_ids_by_schema() -> Patches:
    """Field ids are numbers in the order of each schema, whatever the ledger has."""
    return [patch.object(LedgerFieldIds, "find", lambda self, topic, paths: numbered(paths))]


def sync_markers_differ() -> Patches:
    """Each task writes other sync markers."""
    numbers = itertools.count(1 << 100)
    return [patch.object(avro_container, "sync_marker", lambda key: next(numbers).to_bytes(16, "big"))]


def offsets_of_row_groups_forgotten() -> Patches:
    """Each row group is encoded as the first of its object."""
    original = ParquetContainer.block
    return [patch.object(ParquetContainer, "block", lambda self, rows, position: original(self, rows, 4))]


def row_groups_forgotten() -> Patches:
    """The footer does not name the row groups of earlier rounds."""
    original = PartAssembler.take_remainder

    def take_remainder(self: PartAssembler) -> Remainder[NewBytes]:
        left = original(self)
        return replace(left, index=left.index._replace(keeps_staged=False))

    return [patch.object(PartAssembler, "take_remainder", take_remainder)]


def parts_end_with_rows() -> Patches:
    """With equalParts a part ends at the end of a row."""

    def assembler(**given: Any) -> PartAssembler:
        return PartAssembler(**{**given, "equal_parts": False})

    return [patch.object(object_writer, "PartAssembler", assembler)]


def bytes_behind_a_part_forgotten() -> Patches:
    """With equalParts the bytes of a record behind the end of a part are lost."""
    original = part_assembler._cut

    def cut(*given: Any) -> Iterator[Any]:
        *parts, _ = original(*given)
        yield from (*parts, [])

    return [patch.object(part_assembler, "_cut", cut)]


def blocks_depend_on_tasks() -> Patches:
    """Each task ends blocks at another size: the records are right, the bytes are not."""
    original, sizes = ContainerSchemas.encoder, itertools.cycle((1, 150, 1 << 30))

    def encoder(self: ContainerSchemas, key: str, topic: str, object_schema: str) -> ObjectEncoder:
        changed = copy.copy(original(self, key, topic, object_schema))
        changed.block_size = next(sizes)
        return changed

    return [patch.object(ContainerSchemas, "encoder", encoder)]


OBJECT_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        object_schemas_not_kept,
        field_ids_by_schema,
        sync_markers_differ,
        offsets_of_row_groups_forgotten,
        row_groups_forgotten,
        parts_end_with_rows,
        bytes_behind_a_part_forgotten,
        blocks_depend_on_tasks,
    )
}

OBJECT_INCLUDE = {
    **dict.fromkeys(("object_schemas_not_kept", "sync_markers_differ", "row_groups_forgotten"), ("containers",)),
    **dict.fromkeys(("offsets_of_row_groups_forgotten", "blocks_depend_on_tasks"), ("containers",)),
    "field_ids_by_schema": ("containers", "edit"),
    **dict.fromkeys(("parts_end_with_rows", "bytes_behind_a_part_forgotten"), ("equal-parts",)),
}
"""The features that a run needs to find a defect."""
