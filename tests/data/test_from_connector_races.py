"""The first start after a connector beside a task that still runs, with kills and another driver (P5)."""

from __future__ import annotations

import contextlib
import itertools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sink_job.api.errors import ConfigurationError, LedgerFenced, LedgerLost
from sink_job.coordinator import coordinator
from sink_job.ledger.first_claim import checks
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.ledger.store import Ledger
from sink_job.ledger.takeover import take_over
from sink_job.maintenance.position.finder import find_position
from sink_job.maintenance.position.start import has_ledger
from sink_job.verify.previous import previous_objects
from tests.support.memory_sink import MemorySinkFixture
from tests.support.previous_objects import (
    LOG,
    accepted,
    driver,
    expect_each_record_once,
    key_of,
    position,
    rows,
    run,
    two_objects,
    write,
)
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog
from tests.support.verify_sink import ROOT

pytestmark = pytest.mark.data


def test_an_object_that_appears_after_the_comparison_prevents_the_claim(sink_fixture: SinkFixture) -> None:
    previous = two_objects(sink_fixture)
    write(sink_fixture, LOG, (20, 30))
    with pytest.raises(LedgerLost, match=r"0000000020\.json appeared after"):
        run(sink_fixture, previous)
    assert not Ledger(sink_fixture.s3, ROOT, "test").exists()
    run(sink_fixture, accepted(sink_fixture, LOG))
    expect_each_record_once(sink_fixture)


@pytest.mark.parametrize("starts", [1, 2], ids=["first start", "next start"])
def test_an_object_that_appears_after_the_claim_stops_every_start_before_a_round(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, starts: int
) -> None:
    previous = two_objects(sink_fixture)
    append = Ledger.append

    def and_a_task_completes(ledger: Ledger, record: object) -> None:
        append(ledger, record)  # type: ignore[arg-type]
        write(sink_fixture, LOG, (20, 30))

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", and_a_task_completes)
        with pytest.raises(LedgerLost, match=r"0000000020\.json appeared after"):
            run(sink_fixture, previous)
    for _ in range(starts - 1):
        with pytest.raises(LedgerLost, match=r"0000000020\.json appeared after"):
            run(sink_fixture, None)
    assert sink_fixture.group() == {"log-0": 10}
    sink_fixture.s3.delete([key_of(20)])
    run(sink_fixture, None)
    expect_each_record_once(sink_fixture)


@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_an_accepted_object_that_changes_before_the_claim_prevents_it(sink_fixture: SinkFixture, change: str) -> None:
    previous = two_objects(sink_fixture)
    if change == "deleted":
        sink_fixture.s3.delete([key_of(10)])
    else:
        sink_fixture.put(key_of(10), rows(LOG, range(10, 12)))
    with pytest.raises(LedgerLost, match="deleted or changed"):
        run(sink_fixture, previous)
    assert not Ledger(sink_fixture.s3, ROOT, "test").exists()


def test_offsets_that_another_program_changes_after_the_comparison_prevent_the_claim(
    sink_fixture: SinkFixture,
) -> None:
    previous = two_objects(sink_fixture)
    sink_fixture.set_group({"log-0": 15})
    with pytest.raises(ConfigurationError, match="they were log-0 at 10 and are log-0 at 15"):
        run(sink_fixture, previous)
    assert not Ledger(sink_fixture.s3, ROOT, "test").exists()


def test_unfinished_uploads_at_keys_of_the_sink_are_aborted_and_others_stay(sink_fixture: SinkFixture) -> None:
    previous = two_objects(sink_fixture)
    others = ["topics/log/other.json", "topics/another/partition=0/another+0+0000000020.json", "elsewhere/x"]
    for key in (key_of(20), key_of(20), key_of(5), *others):
        sink_fixture.s3.create_upload(key)
    assert [p.facts.uploads for p in position(sink_fixture, LOG).partitions] == [3]
    run(sink_fixture, previous)
    assert sorted(upload.key for upload in sink_fixture.s3.list_uploads("")) == sorted(others)
    expect_each_record_once(sink_fixture)


def test_a_task_whose_upload_was_aborted_cannot_make_its_object_visible(sink_fixture: SinkFixture) -> None:
    previous = two_objects(sink_fixture)
    upload = sink_fixture.s3.create_upload(key_of(20))
    part = sink_fixture.s3.upload_part(key_of(20), upload, 1, rows(LOG, range(20, 30)))
    driver(sink_fixture, previous).start().close()
    with pytest.raises(Exception, match="NoSuchUpload"):
        sink_fixture.s3.complete(key_of(20), upload, [part])
    run(sink_fixture, None)
    expect_each_record_once(sink_fixture)


def test_an_upload_that_a_later_driver_has_started_is_not_aborted(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    previous = two_objects(sink_fixture)
    sink_fixture.s3.create_upload(key_of(40))
    listed = checks.uploads_of

    def and_another_driver_claims(*given: Any) -> Iterator[Any]:
        found = list(listed(*given))
        monkeypatch.setattr(checks, "uploads_of", listed)
        driver(sink_fixture, None).start().close()
        later.append(sink_fixture.s3.create_upload(key_of(20)))
        return iter(found)

    later: list[str] = []
    monkeypatch.setattr(checks, "uploads_of", and_another_driver_claims)
    with pytest.raises(LedgerFenced):
        run(sink_fixture, previous)
    assert [upload.upload_id for upload in sink_fixture.s3.list_uploads("")] == later


def test_a_crash_after_the_claim_needs_no_option_at_the_next_start(sink_fixture: SinkFixture) -> None:
    driver(sink_fixture, two_objects(sink_fixture)).start().close()
    run(sink_fixture, None)
    expect_each_record_once(sink_fixture)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_a_connector_has_written_each_record_is_in_one_object_or_the_start_is_rejected(
    tmp_path: Path, data: st.DataObject
) -> None:
    """Objects that follow each other, with faults: a record that is missing, doubled, changed or in two objects."""
    end = data.draw(st.integers(1, 24), "end of the log")
    fault = data.draw(st.sampled_from(["none", "none", "missing", "doubled", "changed", "overlapping"]), "fault")
    gaps = data.draw(st.frozensets(st.integers(0, end - 1), max_size=4), "gaps")
    # Before the offset, an object that was changed shows by its rows alone where it ends: gaps would hide it.
    log = SyntheticLog(records=end, gaps=frozenset() if fault == "changed" else gaps)
    committed = data.draw(st.one_of(st.none(), st.integers(0, end)), "committed offset")
    cuts = sorted(data.draw(st.sets(st.integers(0, end), max_size=4), "ends of objects") | {0})
    folder = tmp_path / uuid.uuid4().hex
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        memory = MemorySinkFixture(folder, patch)
        patch.setattr(previous_objects, "connect", lambda settings: memory.s3)
        for first, last in itertools.pairwise(cuts):
            held = [offset for offset in range(first, last) if offset not in log.gaps]
            if not held:
                continue
            written, is_faulty = held, data.draw(st.booleans(), "is faulty")
            if is_faulty and fault == "missing":
                written = held[:-1] if len(held) > 1 else held
            elif is_faulty and fault == "doubled":
                written = [*held, held[-1]]
            elif is_faulty and fault == "overlapping":
                written = held if last == end or last in log.gaps else [*held, last]
            content = rows(log, written)
            if is_faulty and fault == "changed":
                content = content.replace(b'"offset":%d' % held[0], b'"offset":%d' % (held[0] + 1000))
            memory.s3.put(key_of(held[0]), content)
        if committed is not None:
            memory.group.write_text(json.dumps({"log-0": committed}))
        previous = position_in_memory(memory, log, start_at_objects=True)
        if previous is None:
            return
        memory.run(log, previous=previous)
        newest = max((o.last + 1 for o in previous.objects), default=0)
        checked = newest if committed is None else committed
        found = sorted(n for offsets in memory.offsets().values() for n in offsets if checked <= n < 1000)
        assert found == [offset for offset in range(checked, end) if offset not in log.gaps]
        if fault not in ("doubled", "changed"):  # before the offset such an object is compared by its number of rows
            _expect_no_record_left_out(memory, log, committed, cuts[:-1])


def _expect_no_record_left_out(
    memory: MemorySinkFixture, log: SyntheticLog, committed: int | None, cuts: list[int]
) -> None:
    """Each record from the newest object before the offset on is in an object; without an offset from the first one on,
    without an older object from the beginning of the log on."""
    firsts = [n for n in (next((n for n in range(cut, log.records) if n not in log.gaps), None) for cut in cuts) if n]
    older = [first for first in firsts if committed is not None and first < committed]
    found = {n for offsets in memory.offsets().values() for n in offsets}
    lowest = max(older, default=0)
    assert found.issuperset(n for n in range(lowest, log.records) if n not in log.gaps)


class Killed(BaseException):
    """The end of a process."""


def test_a_first_start_killed_at_any_request_leaves_each_record_in_one_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison is repeated while there is no ledger; the bucket is in memory."""
    kills, was_killed = 0, True
    while was_killed:
        folder = tmp_path / str(kills)
        folder.mkdir()
        memory = MemorySinkFixture(folder, monkeypatch)
        monkeypatch.setattr(previous_objects, "connect", lambda settings, s3=memory.s3: s3)
        for first, end in ((0, 10), (10, 17)):
            memory.s3.put(key_of(first), rows(LOG, range(first, end)))
        memory.group.write_text('{"log-0": 10}')
        memory.s3.create_upload(key_of(17))
        calls: list[str] = []

        def kill(call: str, key: str, at: int = kills, calls: list[str] = calls) -> None:
            calls.append(call)
            if len(calls) == at + 1:
                raise Killed

        def start(memory: MemorySinkFixture = memory) -> None:
            s3: Any = memory.s3
            memory.run(LOG, previous=None if has_ledger(memory.sink, s3) else position_in_memory(memory, LOG))

        with memory.faults(kill), contextlib.suppress(Killed):
            start()
        was_killed = len(calls) > kills
        start()
        assert sorted(n for offsets in memory.offsets().values() for n in offsets) == list(range(45)), calls
        assert memory.orphans() == []
        assert memory.offsets().keys() >= {key_of(0), key_of(10)}
        kills += 1 if kills < 50 else 15
    assert kills > 60


def test_a_driver_that_resumes_after_a_later_claim_is_fenced_and_reports_no_object(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    previous = two_objects(sink_fixture)
    slow, is_head = driver(sink_fixture, previous), Ledger.is_head

    def and_another_driver_runs(ledger: Ledger, claim: int, state: object) -> bool:
        result = is_head(ledger, claim, state)  # type: ignore[arg-type]
        monkeypatch.setattr(Ledger, "is_head", is_head)
        run(sink_fixture, previous)
        return result

    monkeypatch.setattr(Ledger, "is_head", and_another_driver_runs)
    with pytest.raises(LedgerFenced):
        slow.run()
    expect_each_record_once(sink_fixture)


def test_accepted_objects_may_go_once_the_check_has_passed(sink_fixture: SinkFixture) -> None:
    idle = SyntheticLog(records=20)
    write(sink_fixture, idle, (0, 10), (10, 20))
    sink_fixture.set_group({"log-0": 10})
    run(sink_fixture, accepted(sink_fixture, idle), idle)
    sink_fixture.s3.delete([key_of(10)])
    run(sink_fixture, None, idle)
    assert sink_fixture.keys() == [key_of(0)]
    assert sink_fixture.group() == {"log-0": 20}


def test_no_command_claims_the_ledger_before_the_check_has_passed(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    previous = two_objects(sink_fixture)
    claim = take_over

    def and_a_task_completes(*given: Any) -> Any:
        state = claim(*given)
        write(sink_fixture, LOG, (20, 30))
        return state

    with monkeypatch.context() as patch:
        patch.setattr(coordinator, "take_over", and_a_task_completes)
        with pytest.raises(LedgerLost):
            run(sink_fixture, previous)
    with pytest.raises(ConfigurationError, match="has not completed its first start"):
        sink_fixture.discard()
    with pytest.raises(ConfigurationError, match="has not completed its first start"):
        sink_fixture.reset(LOG, "Earliest", on_existing="NewPrefix")
    sink_fixture.s3.delete([key_of(20)])
    run(sink_fixture, None)
    sink_fixture.discard()
    expect_each_record_once(sink_fixture)


def position_in_memory(
    memory: MemorySinkFixture, log: SyntheticLog, *, start_at_objects: bool = False
) -> PreviousWriter | None:
    """What a first claim records; None if the start is rejected."""
    s3: Any = memory.s3
    settings: Any = None
    admin, engine = FileConsumerGroup(log, memory.group), InlineEngine(log)
    found = find_position(memory.sink, s3, settings, admin, engine, start_at_objects=start_at_objects)
    return None if found.exit_code else found.previous_writer()


def test_without_the_option_the_start_is_rejected_as_before(sink_fixture: SinkFixture) -> None:
    two_objects(sink_fixture)
    with pytest.raises(LedgerLost, match=r"0000000010\.json begins at or after offset 10"):
        run(sink_fixture, None)
