"""The consumer group is output only (P5, P9): whoever sets its offsets, nothing is lost or copied twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy
from devtools.faults.s3_requests import kind
from devtools.processes import wait_until
from devtools.s3 import S3Server
from sink_job.api.errors import ConfigurationError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.group_offsets import COMMIT_INTERVAL_MS
from sink_job.ledger.orphan_cleanup import OrphanCleaner
from sink_job.ledger.store import Intent, Ledger
from tests.support.crash_points import crash_before_publishing
from tests.support.running import running_driver
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
SECOND = "topics/log/partition=0/log+0+0000000010.json"
THIRD = "topics/log/partition=0/log+0+0000000020.json"
ROOT = "topics/_s3sink/default.log/"


def killed_after_a_round(sink_fixture: SinkFixture, log: SyntheticLog) -> None:
    """Runs a driver that publishes closed objects and then stops without an end."""
    loop = sink_fixture.driver(log, DONE, flush_size=10).start()
    loop.recover()
    while loop.run_once():
        pass


class RecordingGroup(FileConsumerGroup):
    """A consumer group that records its commits."""

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        self.meanwhile(offsets)
        super().alter_group_offsets(group, offsets, metadata=metadata)

    def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A hook that a test runs just before a commit."""


def with_admin(
    sink_fixture: SinkFixture, log: SyntheticLog, admin: type[FileConsumerGroup], **given: Any
) -> Coordinator:
    driver = sink_fixture.driver(log, given.pop("goal", DONE), flush_size=10, **given)
    kafka = admin(log, sink_fixture.folder / "group.json")
    return Coordinator(driver.sink, replace(driver.context, admin=kafka), driver.stop_condition, driver.progress)


# -- objects moved by readers, offsets set by other programs ---------------------------------------------------------


@pytest.mark.parametrize("group", [{"log-0": 0}, {}], ids=["set back", "expired"])
def test_moved_objects_are_not_copied_again_after_the_group_is_set_back(
    sink_fixture: SinkFixture, group: dict[str, int]
) -> None:
    killed_after_a_round(sink_fixture, SyntheticLog(records=10))
    assert sink_fixture.group() == {"log-0": 10}
    sink_fixture.s3.delete([FIRST])
    sink_fixture.set_group(group)
    sink_fixture.run(SyntheticLog(records=20), DONE, flush_size=10)
    assert sink_fixture.keys() == [SECOND]
    assert sink_fixture.group() == {"log-0": 20}


def test_a_lost_closed_object_is_rebuilt_although_the_group_was_set_forward(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_before_publishing(sink_fixture, monkeypatch, SyntheticLog(records=10), flush_size=10)
    sink_fixture.abort_uploads_of(FIRST)
    sink_fixture.set_group({"log-0": 10})
    sink_fixture.run(SyntheticLog(records=10), DONE, flush_size=10)
    assert sink_fixture.offsets(FIRST) == list(range(10))


def test_the_ledger_acknowledges_an_object_before_the_groups_offset_passes_it(sink_fixture: SinkFixture) -> None:
    acknowledged: dict[int, bool] = {}

    class Kafka(RecordingGroup):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            pending = Ledger(sink_fixture.s3, ROOT, "reader").load().pending
            acknowledged[offsets[TopicPartition("log", 0)]] = pending == {}

    with_admin(sink_fixture, SyntheticLog(records=30), Kafka, max_records=10).run()
    assert acknowledged == {0: True, 10: True, 20: True, 30: True}


def test_a_publishing_round_adds_one_small_record_and_an_idle_driver_adds_none(
    s3: S3Server, sink_fixture: SinkFixture
) -> None:
    now = [CLOCK_MS]
    given: dict[str, Any] = {"flush_size": 10, "max_records": 10, "clock": lambda: now[0]}
    with FaultProxy(s3.endpoint) as proxy:
        driver = sink_fixture.through(proxy).driver(SyntheticLog(records=30), DONE, **given)
        loop = driver.start()
        loop.recover()
        while loop.run_once():
            pass
        assert proxy.count(kind("PutObject", key="/ledger/")) == 1 + 2 * 3
        puts = proxy.count(kind("PutObject"))
        for _ in range(5):
            now[0] += driver.context.discovery_interval_ms
            assert loop.run_once() is False
        assert proxy.count(kind("PutObject")) == puts


# -- commits while idle ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [{"log-0": 3}, {"log-0": 15}, {}], ids=["set back", "set forward", "expired"])
def test_a_running_driver_commits_again_if_the_groups_offset_differs(
    sink_fixture: SinkFixture, group: dict[str, int]
) -> None:
    now = [CLOCK_MS]
    driver = sink_fixture.driver(SyntheticLog(records=20), StopCondition(), flush_size=10, clock=lambda: now[0])
    with running_driver(driver):
        wait_until(lambda: sink_fixture.group() == {"log-0": 20}, "the first commit", seconds=20)
        sink_fixture.set_group(group)
        now[0] += driver.context.discovery_interval_ms
        wait_until(lambda: sink_fixture.group() == {"log-0": 20}, "the commit again", seconds=20)


def test_all_offsets_are_committed_every_hour_against_their_expiry(sink_fixture: SinkFixture) -> None:
    now, commits = [CLOCK_MS], []

    class Kafka(RecordingGroup):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            commits.append(dict(offsets))

    log = SyntheticLog(records=10, partitions=2)
    driver = with_admin(sink_fixture, log, Kafka, goal=StopCondition(), clock=lambda: now[0])
    every = {TopicPartition("log", 0): 10, TopicPartition("log", 1): 10}
    with running_driver(driver):
        wait_until(lambda: commits[-1:] == [every], "the commit of the round", seconds=20)
        commits.clear()
        now[0] += COMMIT_INTERVAL_MS
        wait_until(lambda: commits == [every], "the commit an hour later", seconds=20)


def test_equal_offsets_are_not_committed_again(sink_fixture: SinkFixture) -> None:
    now, commits, asked = [CLOCK_MS], [], [0]

    class Kafka(RecordingGroup):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            commits.append(dict(offsets))

        def group_offsets(
            self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
        ) -> dict[TopicPartition, int]:
            asked[0] += 1
            return super().group_offsets(group, partitions, metadata=metadata)

    driver = with_admin(sink_fixture, SyntheticLog(records=10), Kafka, goal=StopCondition(), clock=lambda: now[0])
    with running_driver(driver):
        wait_until(lambda: sink_fixture.group() == {"log-0": 10}, "the first commit", seconds=20)
        commits.clear()
        asked[0] = 1
        now[0] += driver.context.discovery_interval_ms
        wait_until(lambda: asked[0] > 1, "the comparison", seconds=20)
    assert commits == []


# -- the first start -------------------------------------------------------------------------------------------------


def test_the_first_start_claims_the_ledger_before_it_commits(sink_fixture: SinkFixture) -> None:
    ledgers: list[bool] = []

    class Kafka(RecordingGroup):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            ledgers.append(Ledger(sink_fixture.s3, ROOT, "reader").exists())

    with_admin(sink_fixture, SyntheticLog(records=0), Kafka).run()
    assert ledgers == [True]


@pytest.mark.parametrize("deleted", [True, False])
def test_a_start_without_the_ledger_that_the_groups_offsets_name_is_logged(
    sink_fixture: SinkFixture, caplog: pytest.LogCaptureFixture, *, deleted: bool
) -> None:
    log = SyntheticLog(records=10)
    sink_fixture.driver(log, DONE, flush_size=10).run()
    if deleted:
        sink_fixture.s3.delete([each.key for each in sink_fixture.s3.list(ROOT)])
    caplog.clear()
    sink_fixture.driver(log, DONE, flush_size=10).run()
    warned = [each.getMessage() for each in caplog.records if "the ledger was deleted" in each.getMessage()]
    assert len(warned) == deleted
    if deleted:
        assert f"there is no ledger at s3://{sink_fixture.s3.bucket}/{ROOT}" in warned[0]
    assert sink_fixture.group() == {"log-0": 10}


def test_a_crashed_competitor_of_the_first_start_leaves_no_higher_offset(sink_fixture: SinkFixture) -> None:
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group", "startingOffsets": "Latest"}
    first = sink_fixture.driver(SyntheticLog(records=10), DONE, flush_size=10, spec={"kafka": kafka})

    class Kafka(FileConsumerGroup):
        def group_offsets(
            self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
        ) -> dict[TopicPartition, int]:
            found = super().group_offsets(group, partitions, metadata=metadata)
            first.start().recover()
            return found

    rival = with_admin(sink_fixture, SyntheticLog(records=25), Kafka, spec={"kafka": kafka})
    rival._claim_record(rival._discovery.refresh(), rival._ledger.load())
    assert sink_fixture.group() == {"log-0": 10}


def test_a_group_with_active_members_is_rejected_before_the_first_claim(sink_fixture: SinkFixture) -> None:
    class Kafka(FileConsumerGroup):
        members = 2

    with pytest.raises(ConfigurationError, match="consumer group group has 2 active members"):
        with_admin(sink_fixture, SyntheticLog(records=10), Kafka).run()
    assert not Ledger(sink_fixture.s3, ROOT, "reader").exists()


# -- intents ---------------------------------------------------------------------------------------------------------


def test_a_delayed_intent_does_not_hide_an_upload_of_a_later_round(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=5), DONE, flush_size=10)
    ledger = Ledger(sink_fixture.s3, ROOT, "driver")
    state = ledger.load()
    settings = tuple(state.settings.values())
    narrow, wide = (
        Intent(state.epoch, 10 + n, state.number + 1, CLOCK_MS, {"log-0": (0, end)}, settings)
        for n, end in enumerate((10, 20))
    )
    for intent in (narrow, wide, narrow):  # the reply to the first put was lost, and its repetition is delayed
        ledger.write_intent(intent)
    sink_fixture.s3.create_upload(SECOND)
    [upload] = sink_fixture.s3.list_uploads(SECOND)
    clean_up = OrphanCleaner(sink_fixture.s3, ledger, state.epoch)
    clean_up._abort_uploads(state, [each.intent for each in ledger.intents()[0]], upload.initiated_ms + 1)
    assert list(sink_fixture.s3.list_uploads("")) == []


def test_clean_up_removes_intents_that_later_ones_of_their_epoch_cover(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=40), DONE, flush_size=10, max_records=10)
    before = [listed.key for listed in sink_fixture.s3.list(f"{ROOT}intent/")]
    sink_fixture.run(SyntheticLog(records=40), DONE, flush_size=10, max_records=10)
    after = [listed.key for listed in sink_fixture.s3.list(f"{ROOT}intent/")]
    assert len(before) > 1
    assert after == before[-1:]
