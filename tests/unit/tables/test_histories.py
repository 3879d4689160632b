"""Random histories of a table: registrations with faults beside other programs, and no object twice or missing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from sink_job.api.errors import TableNotRegistered, TransientError
from sink_job.tables.catalogs import CommitRejected, CommitUnknown
from sink_job.tables.plan import Acceptance, Request
from tests.support.table_sink import BEGIN, NAME, TableSink

HISTORIES = 24
STEPS = 14
FIRST_SEED = int(os.environ.get("S3SINK_SEED", "1"))


class History:
    """One history. `given_up` are objects that a rollback has removed and a user has accepted as removed."""

    def __init__(self, sink: TableSink, seed: int) -> None:
        self.sink = sink
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
        ]
        if self.sink.catalog.load(NAME) is not None:
            choices += [self.commit_of_another, self.roll_back]
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
        assert len(files) == len(set(files)), self.steps
        assert missing <= self.given_up, self.steps

    # -- steps ---------------------------------------------------------------------------------------------------------

    def write(self) -> None:
        self.records += self.random.choice([10, 20])
        self.sink.write(self.records, ids=self.random.choice([(1,), (2,), (1, 2)]))

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


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + HISTORIES))
def test_no_object_is_twice_in_a_table_or_missing(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`S3SINK_SEED` chooses other histories."""
    history = History(TableSink(tmp_path, monkeypatch), seed)
    for _ in range(STEPS):
        history.step()
    history.finish()
