"""A sink whose table is continued in new ones: records whose field `kind` has another type, and offset resets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.ledger.store import Ledger
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.memory import Memory, StoredMemory
from sink_job.tables.registrations.topic_table import TopicTable
from sink_job.tables.successors.chain import ChainRegistration
from sink_job.tables.successors.continuation import Successors, successor_name
from tests.support.schema_log import SchemaLog, connect_schema
from tests.support.synthetic_log import FileConsumerGroup
from tests.support.table_sink import NAME, SINK_ID, TableSink

TEXT: Final = 1
"""The schema id of records whose field `kind` is a text."""
NUMBER: Final = 3
"""The one of records in which it is a number: no table can have both."""
CONTINUING: Final = Successors(on_reset=True, on_incompatible=True, base=NAME)


@dataclass(frozen=True)
class TypedLog(SchemaLog):
    """The schema ids of offsets are `kinds`: by ranges `(end, ids)`, the ids over and over."""

    kinds: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def id(self, offset: int) -> int:
        start = 0
        for end, ids in self.kinds:
            if offset < end:
                return ids[(offset - start) % len(ids)]
            start = end
        return TEXT

    def item(self, partition: int, offset: int) -> dict[str, object]:
        kind: object = offset if self.id(offset) == NUMBER else f"k{offset}"
        return {"partition": partition, "offset": offset, "kind": kind}

    def value(self, partition: int, offset: int) -> bytes:
        schema = connect_schema(TEXT)
        if self.id(offset) == NUMBER:
            fields = [{**each, "type": "int64"} for each in schema["fields"]]
            schema = {**schema, "fields": fields, "version": 3}
        return json.dumps({"schema": schema, "payload": self.item(partition, offset)}).encode()


def typed_log(*kinds: tuple[int, tuple[int, ...]], **given: Any) -> TypedLog:
    """Records up to the last end of `kinds`."""
    return TypedLog(
        records=kinds[-1][0],
        kinds=kinds,
        converter=ConverterType.CONNECT_JSON,
        output=OutputFormat.PARQUET,
        **given,
    )


class ChainSink(TableSink):
    """A sink `default.log`, whose table `lake.log` is continued as `successors` says."""

    successors = CONTINUING

    def write_log(self, log: TypedLog) -> None:
        """Runs a driver until all records are in objects."""
        self.fixture.run(log)

    def separate(self) -> None:
        """A path has an object for each schema at a time: one record acknowledges objects of both."""
        spec = self.fixture.sink.spec.model_copy(update={"schema_compatibility": "Separate"})
        self.fixture.sink = self.fixture.sink.model_copy(update={"spec": spec})

    def reset(self, log: TypedLog, on_existing: str = "NewPrefix") -> None:
        """`s3sink reset-offsets` to the first offsets."""
        given = {"nonce": uuid.uuid4().hex, "to": "Earliest", "onExisting": on_existing}
        admin = FileConsumerGroup(log, self.fixture.group)
        request = OffsetResetSpec.model_validate(given)
        OffsetResetter(self.fixture.sink, self.fixture.ledger_access(), admin, request).run()

    def registration(self) -> Any:
        s3: Any = self.s3
        view, objects = read_ledger(Ledger(s3, self.root, "register"), SINK_ID)
        target = TopicTable(
            name=NAME,
            topic="log",
            objects=objects.get("log", ()),
            ledger=view,
            prefixes=("topics/",),
            wait=lambda seconds: None,
            successors=self.successors,
            **self.options,
        )
        return ChainRegistration(s3, self.root, self.catalog, target)

    def tables(self) -> list[str]:
        """The names of the tables that exist."""
        names = [successor_name(NAME, number) for number in range(1, 12)]
        return [each for each in names if self.catalog.load(each) is not None]

    def files_of(self, number: int) -> list[str]:
        """The keys of the objects in the table with this number, sorted, each as often as it is in it."""
        table = self.catalog.load(successor_name(NAME, number))
        snapshot = None if table is None else table.current_snapshot()
        if table is None or snapshot is None:
            return []
        entries = [entry for each in snapshot.manifests(table.io) for entry in each.fetch_manifest_entry(table.io)]
        return sorted(each.data_file.file_path.removeprefix("s3://archive/") for each in entries)

    def all_files(self) -> list[str]:
        """Those of all tables."""
        return sorted(key for number in range(1, 12) for key in self.files_of(number))

    def memory_of(self, number: int) -> Memory | None:
        s3: Any = self.s3
        return StoredMemory(s3, self.root, successor_name(NAME, number)).read()

    def types_of(self, number: int) -> str:
        """The type of the column `kind`."""
        table = self.catalog.load(successor_name(NAME, number))
        assert table is not None
        return str(table.schema().find_type("kind"))

    def generations(self) -> tuple[Sequence[str], Sequence[str]]:
        """The keys of the objects before and after a reset, sorted."""
        keys = self.objects()
        later = [key for key in keys if "generation=2" in key]
        return [key for key in keys if key not in later], later
