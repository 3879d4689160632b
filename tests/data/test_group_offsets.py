"""The consumer group is output only (P5, P9): whoever sets its offsets, nothing is lost and nothing copied twice."""

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
from sink_job.coordinator.committer import COMMIT_INTERVAL_MS
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.ledger.orphan_cleanup import OrphanCleaner
from sink_job.ledger.store import Intent, Ledger
from tests.support.crash_points import end_before_publishing
from tests.support.running import running
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import CLOCK_MS, FileGroup, FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
SECOND = "topics/log/partition=0/log+0+0000000010.json"
THIRD = "topics/log/partition=0/log+0+0000000020.json"
ROOT = "topics/_s3sink/default.log/"


def killed_after_a_round(place: Place, log: FunctionLog) -> None:
    """A driver that publishes what it finds and then never moves again."""
    loop = place.driver(log, DONE, flush_size=10).start()
    loop.recover()
    while loop.run_once():
        pass


class Watched(FileGroup):
    """A consumer group whose commits a test follows."""

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        self.meanwhile(offsets)
        super().alter_group_offsets(group, offsets, metadata=metadata)

    def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
        """What a test does just before a commit takes effect."""


def with_admin(place: Place, log: FunctionLog, admin: type[FileGroup], **given: Any) -> Coordinator:
    driver = place.driver(log, given.pop("goal", DONE), flush_size=10, **given)
    kafka = admin(log, place.folder / "group.json")
    return Coordinator(driver.sink, replace(driver.context, admin=kafka), driver.stop_condition, driver.progress)


# -- objects that readers have moved, offsets that others have set ---------------------------------------------------


@pytest.mark.parametrize("group", [{"log-0": 0}, {}], ids=["set back", "expired"])
def test_objects_that_a_reader_moved_are_not_copied_again_though_the_group_was(
    place: Place, group: dict[str, int]
) -> None:
    killed_after_a_round(place, FunctionLog(records=10))
    assert place.group() == {"log-0": 10}
    place.s3.delete([FIRST])
    place.set_group(group)
    place.run(FunctionLog(records=20), DONE, flush_size=10)
    assert place.keys() == [SECOND]
    assert place.group() == {"log-0": 20}


def test_a_named_object_whose_upload_is_lost_is_rebuilt_though_others_set_the_group_forward(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_before_publishing(place, monkeypatch, FunctionLog(records=10), flush_size=10)
    place.abort_uploads_of(FIRST)
    place.set_group({"log-0": 10})
    place.run(FunctionLog(records=10), DONE, flush_size=10)
    assert place.offsets(FIRST) == list(range(10))


def test_the_ledger_acknowledges_an_object_before_the_groups_offset_passes_it(place: Place) -> None:
    acknowledged: dict[int, bool] = {}

    class Kafka(Watched):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            pending = Ledger(place.s3, ROOT, "reader").load().pending
            acknowledged[offsets[TopicPartition("log", 0)]] = pending == {}

    with_admin(place, FunctionLog(records=30), Kafka, max_records=10).run()
    assert acknowledged == {0: True, 10: True, 20: True, 30: True}


def test_a_round_that_publishes_puts_one_small_record_more_and_an_idle_driver_puts_nothing(
    s3: S3Server, place: Place
) -> None:
    now = [CLOCK_MS]
    given: dict[str, Any] = {"flush_size": 10, "max_records": 10, "clock": lambda: now[0]}
    with FaultProxy(s3.endpoint) as proxy:
        driver = place.through(proxy).driver(FunctionLog(records=30), DONE, **given)
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
def test_a_running_driver_commits_again_where_the_groups_offset_differs(place: Place, group: dict[str, int]) -> None:
    now = [CLOCK_MS]
    driver = place.driver(FunctionLog(records=20), StopCondition(), flush_size=10, clock=lambda: now[0])
    with running(driver):
        wait_until(lambda: place.group() == {"log-0": 20}, "the first commit", seconds=20)
        place.set_group(group)
        now[0] += driver.context.discovery_interval_ms
        wait_until(lambda: place.group() == {"log-0": 20}, "the commit again", seconds=20)


def test_all_offsets_are_committed_again_every_hour_so_that_kafka_does_not_expire_them(place: Place) -> None:
    now, commits = [CLOCK_MS], []

    class Kafka(Watched):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            commits.append(dict(offsets))

    log = FunctionLog(records=10, partitions=2)
    driver = with_admin(place, log, Kafka, goal=StopCondition(), clock=lambda: now[0])
    every = {TopicPartition("log", 0): 10, TopicPartition("log", 1): 10}
    with running(driver):
        wait_until(lambda: commits[-1:] == [every], "the commit of the round", seconds=20)
        commits.clear()
        now[0] += COMMIT_INTERVAL_MS
        wait_until(lambda: commits == [every], "the commit an hour later", seconds=20)


def test_offsets_are_compared_and_not_committed_again_where_they_agree(place: Place) -> None:
    now, commits, asked = [CLOCK_MS], [], [0]

    class Kafka(Watched):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            commits.append(dict(offsets))

        def group_offsets(
            self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
        ) -> dict[TopicPartition, int]:
            asked[0] += 1
            return super().group_offsets(group, partitions, metadata=metadata)

    driver = with_admin(place, FunctionLog(records=10), Kafka, goal=StopCondition(), clock=lambda: now[0])
    with running(driver):
        wait_until(lambda: place.group() == {"log-0": 10}, "the first commit", seconds=20)
        commits.clear()
        asked[0] = 1
        now[0] += driver.context.discovery_interval_ms
        wait_until(lambda: asked[0] > 1, "the comparison", seconds=20)
    assert commits == []


# -- the very first start --------------------------------------------------------------------------------------------


def test_the_very_first_start_claims_the_ledger_before_it_commits(place: Place) -> None:
    ledgers: list[bool] = []

    class Kafka(Watched):
        def meanwhile(self, offsets: Mapping[TopicPartition, int]) -> None:
            ledgers.append(Ledger(place.s3, ROOT, "reader").exists())

    with_admin(place, FunctionLog(records=0), Kafka).run()
    assert ledgers == [True]


def test_a_rival_of_the_very_first_start_that_dies_leaves_no_offset_above_the_first_ones(place: Place) -> None:
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group", "startingOffsets": "Latest"}
    first = place.driver(FunctionLog(records=10), DONE, flush_size=10, spec={"kafka": kafka})

    class Kafka(FileGroup):
        def group_offsets(
            self, group: str, partitions: Sequence[TopicPartition], *, metadata: str = ""
        ) -> dict[TopicPartition, int]:
            found = super().group_offsets(group, partitions, metadata=metadata)
            first.start().recover()
            return found

    rival = with_admin(place, FunctionLog(records=25), Kafka, spec={"kafka": kafka})
    rival._claim_record(rival._discovery.refresh(), rival._ledger.load())
    assert place.group() == {"log-0": 10}


def test_a_group_with_active_members_is_refused_before_there_is_a_ledger(place: Place) -> None:
    class Kafka(FileGroup):
        members = 2

    with pytest.raises(ConfigurationError, match="consumer group group has 2 active members"):
        with_admin(place, FunctionLog(records=10), Kafka).run()
    assert not Ledger(place.s3, ROOT, "reader").exists()


# -- intents ---------------------------------------------------------------------------------------------------------


def test_an_intent_whose_put_arrives_late_does_not_hide_an_upload_of_a_later_round(place: Place) -> None:
    place.run(FunctionLog(records=5), DONE, flush_size=10)
    ledger = Ledger(place.s3, ROOT, "driver")
    state = ledger.load()
    settings = tuple(state.settings.values())
    narrow, wide = (
        Intent(state.epoch, 10 + n, state.number + 1, CLOCK_MS, {"log-0": (0, end)}, settings)
        for n, end in enumerate((10, 20))
    )
    for intent in (narrow, wide, narrow):  # the reply to the first put was lost, and a repetition of it was delayed
        ledger.write_intent(intent)
    place.s3.create_upload(SECOND)
    [upload] = place.s3.list_uploads(SECOND)
    clean_up = OrphanCleaner(place.s3, ledger, state.epoch)
    clean_up._abort_uploads(state, [each.intent for each in ledger.intents()[0]], upload.initiated_ms + 1)
    assert list(place.s3.list_uploads("")) == []


def test_a_clean_up_removes_the_intents_that_later_ones_of_their_epoch_cover(place: Place) -> None:
    place.run(FunctionLog(records=40), DONE, flush_size=10, max_records=10)
    before = [listed.key for listed in place.s3.list(f"{ROOT}intent/")]
    place.run(FunctionLog(records=40), DONE, flush_size=10, max_records=10)
    after = [listed.key for listed in place.s3.list(f"{ROOT}intent/")]
    assert len(before) > 1
    assert after == before[-1:]
