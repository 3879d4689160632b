"""`reset-offsets` over a ledger that a driver has left: what a request changes, reports, and rejects unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError, ExistingObjects, InvalidSpec, TopicNotFound, TransientError
from sink_job.api.report import ResetReport
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.session import LedgerSession
from sink_job.ledger.store import Ledger
from sink_job.maintenance import offset_reset
from sink_job.maintenance.offset_reset import OffsetResetter
from tests.support.memory_sink import PUBLISH_ALL, MemorySinkFixture
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, SyntheticLog

LOG = SyntheticLog(records=12)
LONGER = replace(LOG, records=20)
LEFT_OPEN = StopCondition(until_caught_up=True)
FIRST = TopicPartition("log", 0)


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    """A sink that has copied `LOG` to three objects, and has none open."""
    fixture = MemorySinkFixture(tmp_path, monkeypatch)
    fixture.run(LOG, goal=PUBLISH_ALL)
    return fixture


def resetter(sink: MemorySinkFixture, log: SyntheticLog, to: str, nonce: str = "n", **request: Any) -> OffsetResetter:
    found = OffsetResetSpec.model_validate({"nonce": nonce, "to": to, **request})
    return OffsetResetter(sink.sink, sink.ledger_access(), FileConsumerGroup(log, sink.group), found)


def reset(sink: MemorySinkFixture, log: SyntheticLog, to: str, nonce: str = "n", **request: Any) -> ResetReport:
    return resetter(sink, log, to, nonce, **request).run()


def starts(report: ResetReport) -> dict[int, tuple[int | None, int]]:
    """The previous offset and the start of each partition."""
    return {each.partition: (each.previous, each.start) for each in report.partitions}


def group(sink: MemorySinkFixture, log: SyntheticLog = LONGER) -> Mapping[TopicPartition, int]:
    return FileConsumerGroup(log, sink.group).group_offsets("group", [FIRST])


def changed_files(sink: MemorySinkFixture, before: Mapping[str, Any]) -> set[str]:
    return {key for key, stored in sink.s3.objects.items() if before.get(key) is not stored} | (
        before.keys() - sink.s3.objects.keys()
    )


# -- what a request does -----------------------------------------------------------------------------------------------


def test_latest_skips_what_was_not_copied_and_the_group_continues_there(sink: MemorySinkFixture) -> None:
    report = reset(sink, LONGER, "Latest")
    assert (report.generation, report.skipped, report.copied_again, report.repeated) == (2, 8, 0, False)
    assert (starts(report), group(sink)) == ({0: (12, 20)}, {FIRST: 20})
    sink.run(replace(LOG, records=22), goal=PUBLISH_ALL)
    assert sorted(chain.from_iterable(sink.offsets().values())) == [*range(12), 20, 21]


def test_earliest_in_a_new_prefix_copies_all_records_again(sink: MemorySinkFixture) -> None:
    before = sink.offsets()
    report = reset(sink, LOG, "Earliest", onExisting="NewPrefix")
    assert (report.topics_dir, report.copied_again, report.skipped) == ("topics/generation=2", 12, 0)
    sink.run(LOG, goal=PUBLISH_ALL)
    assert sink.offsets().items() > before.items()
    again = {key: offsets for key, offsets in sink.offsets().items() if key.startswith("topics/generation=2/")}
    assert sorted(chain.from_iterable(again.values())) == list(range(12))


def test_a_timestamp_starts_at_the_first_record_not_before_it(sink: MemorySinkFixture) -> None:
    late = CLOCK_MS + 10**9
    spec = {"onExisting": "NewPrefix"}
    found = OffsetResetSpec.model_validate({"nonce": "n", "to": "Timestamp", "timestamp": LOG.timestamp(7) - 1, **spec})
    access = sink.ledger_access()
    access = replace(access, clock=lambda: late)
    report = OffsetResetter(sink.sink, access, FileConsumerGroup(LOG, sink.group), found).run()
    assert starts(report) == {0: (12, 7)}


def test_partitions_that_the_request_does_not_list_keep_their_position(sink: MemorySinkFixture) -> None:
    two = replace(LONGER, partitions=2)
    report = reset(sink, two, "Offsets", partitions=[{"topic": "log", "partition": 1, "offset": 3}])
    assert starts(report) == {0: (12, 12), 1: (None, 3)}
    assert (report.skipped, report.copied_again) == (0, 0)


def test_open_objects_are_discarded_and_their_records_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = MemorySinkFixture(tmp_path, monkeypatch)
    sink.run(LOG, goal=LEFT_OPEN)
    report = reset(sink, LOG, "Latest")
    assert (starts(report), report.skipped, sink.orphans()) == ({0: (10, 12)}, 2, [])


def test_a_topic_that_no_longer_exists_keeps_its_position_and_gets_no_group_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = MemorySinkFixture(tmp_path, monkeypatch)
    kafka = sink.sink.spec.kafka.model_copy(update={"topics": None, "topics_pattern": "log|other"})
    sink.sink = sink.sink.model_copy(update={"spec": sink.sink.spec.model_copy(update={"kafka": kafka})})
    sink.run(replace(LOG, other_topics={"other": "id"}), goal=PUBLISH_ALL)
    report = reset(sink, LONGER, "Latest")
    assert {(each.topic, each.start) for each in report.partitions} == {("log", 20), ("other", 12)}


# -- requests that are repeated ----------------------------------------------------------------------------------------


def test_a_request_is_applied_once_and_reports_the_same_again(sink: MemorySinkFixture) -> None:
    first = reset(sink, LONGER, "Latest")
    again = reset(sink, replace(LOG, records=30), "Latest")
    assert again == first.model_copy(update={"repeated": True})
    assert group(sink) == {FIRST: 20}


def test_an_interrupted_request_is_completed_by_its_repetition(
    sink: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = FileConsumerGroup(LONGER, sink.group)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileConsumerGroup, "alter_group_offsets", killed)
        with pytest.raises(KeyboardInterrupt):
            reset(sink, LONGER, "Latest")
    assert admin.group_offsets("group", [FIRST]) == {FIRST: 12}
    report = reset(sink, LONGER, "Latest")
    assert (report.repeated, report.generation) == (True, 2)
    assert admin.group_offsets("group", [FIRST]) == {FIRST: 20}


def test_a_request_before_another_reset_is_not_applied_again(sink: MemorySinkFixture) -> None:
    first = reset(sink, LONGER, "Latest", "first")
    reset(sink, LONGER, "Earliest", "second", onExisting="NewPrefix")
    before = dict(sink.s3.objects)
    again = reset(sink, LONGER, "Latest", "first")
    assert (again.generation, again.record, again.repeated) == (2, first.record, True)
    assert changed_files(sink, before) == set()
    assert group(sink) == {FIRST: 0}


@pytest.mark.parametrize("other", [{"to": "Earliest"}, {"to": "Latest", "onExisting": "NewPrefix"}])
def test_another_request_with_the_same_nonce_is_rejected_unchanged(
    sink: MemorySinkFixture, other: dict[str, Any]
) -> None:
    reset(sink, LONGER, "Latest")
    before = dict(sink.s3.objects)
    with pytest.raises(
        ConfigurationError, match=r"the nonce n was applied before: to Latest with onExisting Fail, which"
    ):
        reset(sink, LONGER, **other)
    assert changed_files(sink, before) == set()


def test_a_concurrent_reset_is_reported_and_this_one_not_applied(
    sink: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claim(access: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(offset_reset, "LedgerSession", LedgerSession)
            reset(sink, LONGER, "Latest", "other")
        return LedgerSession(access)

    monkeypatch.setattr(offset_reset, "LedgerSession", claim)
    with pytest.raises(
        TransientError, match="another offset reset started generation 2 at the same time; this request"
    ):
        reset(sink, LONGER, "Earliest", onExisting="NewPrefix")
    access = sink.ledger_access()
    assert Ledger(access.s3, access.root, "reader").load().generation == 2


# -- requests that are rejected ----------------------------------------------------------------------------------------


def test_a_sink_that_has_not_run_has_nothing_to_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = MemorySinkFixture(tmp_path, monkeypatch)
    with pytest.raises(
        ConfigurationError, match=r"there is no ledger at s3://archive/topics/_s3sink/default\.log/: this"
    ):
        reset(sink, LOG, "Earliest")
    assert sink.s3.objects == {}


def rejected(
    sink: MemorySinkFixture, error: type[Exception], match: str, log: SyntheticLog, to: str, **request: Any
) -> None:
    """The request is rejected, and neither ledger, objects nor group are changed."""
    before = dict(sink.s3.objects)
    with pytest.raises(error, match=match):
        reset(sink, log, to, **request)
    assert changed_files(sink, before) == set()
    assert group(sink, log) in ({FIRST: 12}, {})


def test_a_topics_pattern_that_matches_nothing_is_rejected(sink: MemorySinkFixture) -> None:
    kafka = sink.sink.spec.kafka.model_copy(update={"topics": None, "topics_pattern": "absent-.*"})
    sink.sink = sink.sink.model_copy(update={"spec": sink.sink.spec.model_copy(update={"kafka": kafka})})
    rejected(
        sink, TopicNotFound, r"no topic matches spec\.kafka\.topicsPattern, so there are no offsets", LOG, "Latest"
    )


def test_objects_that_exist_above_the_start_are_rejected(sink: MemorySinkFixture) -> None:
    rejected(sink, ExistingObjects, r"3 objects hold .*log\+0\+0000000000\.json", LOG, "Earliest")


def test_a_start_beyond_the_log_is_rejected_with_its_field(sink: MemorySinkFixture) -> None:
    beyond = [{"topic": "log", "partition": 0, "offset": 21}]
    rejected(sink, InvalidSpec, r"spec\.offsets\.reset\.partitions\[0\]", LONGER, "Offsets", partitions=beyond)


def test_a_time_in_the_future_is_rejected_with_its_field(sink: MemorySinkFixture) -> None:
    rejected(
        sink, InvalidSpec, r"spec\.offsets\.reset\.timestamp: .* is in the future", LOG, "Timestamp",
        timestamp=CLOCK_MS + 1,
    )  # fmt: skip


def test_a_new_prefix_that_is_not_empty_is_rejected(sink: MemorySinkFixture) -> None:
    sink.s3.put("topics/generation=2/log/partition=0/log+0+0000000000.json", b"{}")
    rejected(sink, ExistingObjects, "generation=2", LOG, "Earliest", onExisting="NewPrefix")
