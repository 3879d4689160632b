"""Random histories of a table: registrations with faults beside other programs, and no object twice or missing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import SetSnapshotRefUpdate

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableNotRegistered, TransientError
from sink_job.tables.catalogs import CommitRejected, CommitUnknown
from sink_job.tables.plan import Acceptance, Request
from sink_job.tables.position import position_in
from tests.support.table_sink import BEGIN, NAME, SINK_ID, TableSink

PARTITIONERS: list[dict[str, Any]] = [
    {"type": "Default"},
    {"type": "Field", "fields": ["kind"]},
    {"type": "FieldAndTime", "fields": ["kind"], "duration": "1d", "pathFormat": "'day'=YYYY-MM-dd", "timezone": "UTC"},
]
HISTORIES = 24
STEPS = 14
FIRST_SEED = int(os.environ.get("S3SINK_SEED", "1"))


class History:
    """One history. `given_up` are objects that a rollback has removed and a user has accepted as removed. In one of
    three, a reader moves objects away, and back; `gone` are those that are away."""

    def __init__(self, sink: TableSink, seed: int) -> None:
        self.sink = sink
        self.moves = seed % 3 == 0
        self.gone: dict[str, Any] = {}
        self.sink.options = {
            "partitioning": [TablePartitioning.PATH, TablePartitioning.NONE][seed % 2],
            "skips_missing": self.moves,
        }
        self.random = Random(seed)
        self.records = 0
        self.given_up: set[str] = set()
        self.steps: list[str] = []

    def step(self) -> None:
        choices = [
            self.write,
            self.register,
            self.register_with_a_kill,
            self.lose_a_reply,
            self.hold_a_commit,
            self.land,
            self.edit,
        ]
        if self.sink.catalog.load(NAME) is not None:
            choices += [self.commit_of_another, self.roll_back, self.fast_forward, self.drop_branch]
        if self.moves and self.records:
            choices += [self.move_away, self.move_back]
        chosen = self.random.choice(choices)
        self.steps.append(chosen.__name__)
        chosen()
        self.check()

    def check(self) -> None:
        if self.sink.catalog.load(NAME) is not None:
            files = self.sink.files()
            assert len(files) == len(set(files)), f"an object is in the table twice after {self.steps}"

    def finish(self) -> None:
        """All objects are in the table once, but for those of accepted rollbacks."""
        self.write()
        self.register()
        self.land()
        self.register()
        files = self.sink.files()
        missing = set(self.sink.objects()) - set(files)
        if not self.given_up:
            absent = {*self.sink.objects(), *self.gone} - set(files)
            position = position_in(self.sink.table().properties, SINK_ID)
            assert position is not None
            assert (0 if position.skipped is None else position.skipped.objects) == len(absent), self.steps
        assert len(files) == len(set(files)), self.steps
        assert missing <= self.given_up, self.steps

    # -- steps ---------------------------------------------------------------------------------------------------------

    def write(self) -> None:
        self.records += self.random.choice([10, 20])
        self.sink.write(self.records, ids=self.random.choice([(1,), (2,), (1, 2)]), paths=2)

    def edit(self) -> None:
        """Another partitioner, or another branch."""
        if self.random.random() < 0.5:
            self.sink.partition_by(**self.random.choice(PARTITIONERS))
        else:
            self.sink.options["branch"] = self.random.choice(["main", "audit"])

    def move_away(self) -> None:
        key = self.random.choice(self.sink.objects() or [""])
        if key:
            self.gone[key] = self.sink.s3.objects.pop(key)

    def move_back(self) -> None:
        for key in self.random.sample(sorted(self.gone), self.random.randint(0, len(self.gone))):
            self.sink.s3.objects[key] = self.gone.pop(key)

    def register(self) -> None:
        if not self.records:
            return
        with suppress(TransientError):  # no commit had a known effect
            try:
                self.sink.register(BEGIN, limit=self.random.choice([1, 10]))
            except TableNotRegistered as error:
                reason = Acceptance(error.reason)
                if reason is Acceptance.ROLLED_BACK:
                    self.given_up |= set(self.sink.objects()) - set(self.sink.files())
                self.sink.register(Request(True, frozenset({reason})))

    def register_with_a_kill(self) -> None:
        with self.sink.killed_at(self.random.randrange(8)):
            self.register()

    def lose_a_reply(self) -> None:
        def lose() -> None:
            self.sink.catalog.after = lambda: None
            raise CommitUnknown("the reply was lost")

        self.sink.catalog.after = lose
        self.register()
        self.sink.catalog.after = lambda: None

    def hold_a_commit(self) -> None:
        self.sink.catalog.holds = True
        self.register()
        self.sink.catalog.holds = False

    def land(self) -> None:
        """Delayed commits arrive, in any order, and some never."""
        held = self.random.sample(self.sink.catalog.held, self.random.randint(0, len(self.sink.catalog.held)))
        self.sink.catalog.held.clear()
        for commit in held:
            try:
                commit()
            except (CommitRejected, CommitUnknown):
                continue

    def commit_of_another(self) -> None:
        with self.sink.table().transaction() as transaction, transaction.update_snapshot().fast_append():
            pass

    def roll_back(self) -> None:
        table = self.sink.table()
        earlier = [each.snapshot_id for each in table.history()]
        if self.random.random() < 0.5 or not earlier:
            return
        with table.manage_snapshots() as snapshots:
            snapshots.set_current_snapshot(self.random.choice(earlier))

    def fast_forward(self) -> None:
        """Main gets the snapshots of the branch audit, if none of its own is lost."""
        table = self.sink.table()
        audit, main = table.metadata.refs.get("audit"), table.current_snapshot()
        if audit is None or (main is not None and main.snapshot_id not in ancestors(table, audit.snapshot_id)):
            return
        update = {"ref-name": "main", "type": "branch", "snapshot-id": audit.snapshot_id}
        self.sink.iceberg.commit_table(table, (), (SetSnapshotRefUpdate.model_validate(update),))

    def drop_branch(self) -> None:
        """The branch audit is dropped, and some of its snapshots expire."""
        table = self.sink.table()
        main = table.current_snapshot()
        if "audit" not in table.metadata.refs or main is None or self.random.random() < 0.5:
            return
        with table.manage_snapshots() as snapshots:
            snapshots.remove_branch("audit")
        table = self.sink.table()
        kept = ancestors(table, main.snapshot_id)
        lost = [each.snapshot_id for each in table.snapshots() if each.snapshot_id not in kept]
        if lost:
            table.maintenance.expire_snapshots().by_ids(
                self.random.sample(lost, self.random.randint(1, len(lost)))
            ).commit()


def ancestors(table: Table, head: int) -> set[int]:
    known = {each.snapshot_id: each.parent_snapshot_id for each in table.snapshots()}
    found: set[int] = set()
    at: int | None = head
    while at is not None and at in known:
        found.add(at)
        at = known[at]
    return found


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + HISTORIES))
def test_no_object_is_twice_in_a_table_or_missing(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`S3SINK_SEED` chooses other histories."""
    history = History(TableSink(tmp_path, monkeypatch), seed)
    for _ in range(STEPS):
        history.step()
    history.finish()
