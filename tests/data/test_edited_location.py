"""Edits of settings that determine object keys and the ledger's location.

An edit of `s3.directoryDelimiter` is an ordinary change of settings. Edits of `s3.topicsDir` and `s3.bucket` would move
the ledger and are rejected.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.coordinator.context import StopCondition
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
PUBLISH = StopCondition(publish_open=True)
LEDGER = "topics/_s3sink/default.log/"


def edited(sink_fixture: SinkFixture, *, sink_id: str | None = None, **s3: Any) -> dict[str, Any]:
    """Settings with these fields of spec.s3, or with this sinkId."""
    fixed = {
        "bucket": sink_fixture.bucket,
        "endpoint": sink_fixture.endpoint,
        "region": "us-east-1",
        "pathStyle": True,
        "partSize": "5Mi",
    }
    return {"s3": {**fixed, **s3}} | ({"sinkId": sink_id} if sink_id else {})


def everything(sink_fixture: SinkFixture) -> dict[str, str]:
    """All keys of the bucket with their ETags, and unfinished uploads."""
    found = {listed.key: listed.etag for listed in sink_fixture.s3.list("")}
    return found | {upload.upload_id: upload.key for upload in sink_fixture.s3.list_uploads("")}


def other_bucket(sink_fixture: SinkFixture, folder: Path) -> SinkFixture:
    """A second bucket with the same Kafka."""
    folder.mkdir()
    return replace(SinkFixture.new(sink_fixture.endpoint, folder), folder=sink_fixture.folder)


# -- directoryDelimiter ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value_bytes", [100, 1_000_000], ids=["staged", "uploaded"])
@pytest.mark.parametrize("scope", ["Partition", "Object"])
@pytest.mark.parametrize(("before", "after"), [("/", "-"), ("-", "/"), ("|", "--")])
def test_an_edit_of_the_directory_delimiter_leaves_each_record_in_one_object(
    sink_fixture: SinkFixture, before: str, after: str, scope: str, value_bytes: int
) -> None:
    given: dict[str, Any] = {"flush_size": 4, "scope": scope, "paths": True}
    log = SyntheticLog(records=17, paths=3, value_bytes=value_bytes)
    sink_fixture.run(log, DONE, **given, spec=edited(sink_fixture, directoryDelimiter=before))
    grown = replace(log, records=40)
    new = edited(sink_fixture, directoryDelimiter=after)
    sink_fixture.run(grown, ALL, **given, spec=new)
    offsets = {key: sink_fixture.offsets(key) for key in sink_fixture.contents()}
    assert sorted(offset for each in offsets.values() for offset in each) == list(range(40))
    assert any(f"log{after}kind=k0{after}log+" in key for key in offsets)
    assert sink_fixture.group() == {"log-0": 40}
    assert [verdict.findings for verdict in sink_fixture.verify(grown, **given, spec=new)] == [()]
    assert sink_fixture.orphans_after(ALL, grown, {**given, "spec": new}) == []
    ledgers = {listed.key.split("_s3sink/")[0] for listed in sink_fixture.s3.list("") if "_s3sink/" in listed.key}
    assert ledgers == {"topics/"}


def test_an_unlisted_object_under_a_previous_delimiter_is_found(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=20)
    sink_fixture.run(log, DONE, flush_size=10)
    new = edited(sink_fixture, directoryDelimiter="-")
    sink_fixture.run(log, DONE, flush_size=10, spec=new)
    sink_fixture.put("topics/log/partition=0/log+0+0000000005.json", b"{}")
    (verdict,) = sink_fixture.verify(log, spec=new)
    assert [(found.type.value, found.offset) for found in verdict.findings] == [("UntrackedObject", 5)]


def test_an_object_under_a_previous_delimiter_conflicts_with_a_reset(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=20)
    sink_fixture.run(log, DONE, flush_size=10)
    new = edited(sink_fixture, directoryDelimiter="-")
    sink_fixture.run(log, DONE, flush_size=10, spec=new)
    with pytest.raises(ConfigurationError, match=r"log/partition=0/log\+0\+0000000000.json"):
        sink_fixture.reset(log, "Earliest", spec=new)


# -- prefixes and topicInPath ----------------------------------------------------------------------------------------

PREFIX = [{"topic": "log", "prefix": "a/b"}]
DIRECTORIES: list[tuple[dict[str, Any], str]] = [
    ({}, "topics/log/"),
    ({"prefixes": PREFIX}, "topics/a/b/log/"),
    ({"topicInPath": False}, "topics/"),
    ({"topicInPath": False, "prefixes": PREFIX}, "topics/a/b/"),
]


@pytest.mark.parametrize(
    ("before", "after", "value_bytes"),
    [
        pytest.param(DIRECTORIES[one], DIRECTORIES[other], value_bytes, id=f"{one} to {other}, {value_bytes} bytes")
        for one, other, value_bytes in ((0, 1, 100), (1, 2, 1_000_000), (3, 0, 100), (0, 3, 1_000_000))
    ],
)
def test_an_edit_of_directories_leaves_each_record_in_one_object(
    sink_fixture: SinkFixture, before: tuple[dict[str, Any], str], after: tuple[dict[str, Any], str], value_bytes: int
) -> None:
    """Open objects keep their keys (P8)."""
    given: dict[str, Any] = {"flush_size": 4, "paths": True}
    log = SyntheticLog(records=17, paths=3, value_bytes=value_bytes)
    sink_fixture.run(log, DONE, **given, spec=edited(sink_fixture, **before[0]))
    grown = replace(log, records=40)
    new = edited(sink_fixture, **after[0])
    sink_fixture.run(grown, ALL, **given, spec=new)
    offsets = {key: sink_fixture.offsets(key) for key in sink_fixture.contents()}
    assert sorted(offset for each in offsets.values() for offset in each) == list(range(40))
    earlier, later = (
        [each[0] for key, each in offsets.items() if re.fullmatch(rf"{directory}kind=k\d/log\+.*", key)]
        for _, directory in (before, after)
    )
    assert max(earlier) < 17 <= min(later)
    assert sink_fixture.group() == {"log-0": 40}
    assert [verdict.findings for verdict in sink_fixture.verify(grown, **given, spec=new)] == [()]
    assert sink_fixture.orphans_after(ALL, grown, {**given, "spec": new}) == []


def test_an_unlisted_object_in_previous_directories_is_found(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=20)
    names = edited(sink_fixture, topicInPath=False, prefixes=PREFIX)
    sink_fixture.run(log, DONE, flush_size=10, spec=names)
    sink_fixture.run(log, DONE, flush_size=10)
    sink_fixture.put("topics/a/b/partition=0/log+0+0000000005.json", b"{}")
    (verdict,) = sink_fixture.verify(log)
    assert [(found.type.value, found.offset) for found in verdict.findings] == [("UntrackedObject", 5)]


def test_an_object_in_other_directories_conflicts_with_a_reset(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=20)
    names = edited(sink_fixture, topicInPath=False)
    sink_fixture.run(log, DONE, flush_size=10, spec=names)
    with pytest.raises(ConfigurationError, match=r"topics/partition=0/log\+0\+0000000000.json"):
        sink_fixture.reset(log, "Earliest", spec=names)


# -- topicsDir and bucket --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [DONE, ALL])
@pytest.mark.parametrize(
    ("field", "old", "edit"),
    [
        ("spec.s3.topicsDir", "topics", {"topicsDir": "lake"}),
        ("spec.s3.topicsDir", "topics", {"topicsDir": ""}),
        ("spec.s3.topicsDir", "topics", {"topicsDir": "lake", "sink_id": "other"}),
    ],
)
def test_an_edit_that_moves_the_ledger_is_rejected_and_nothing_is_written(
    sink_fixture: SinkFixture, field: str, old: str, edit: dict[str, Any], goal: StopCondition
) -> None:
    log = SyntheticLog(records=25)
    sink_fixture.run(log, DONE, flush_size=10)
    before, group = everything(sink_fixture), sink_fixture.group()
    with pytest.raises(ConfigurationError) as error:
        sink_fixture.run(replace(log, records=40), goal, flush_size=10, spec=edited(sink_fixture, **edit))
    assert f"{field} was {old}" in str(error.value)
    assert f"s3://{sink_fixture.bucket}/{LEDGER}" in str(error.value)
    assert error.value.exit_code == 7
    assert (everything(sink_fixture), sink_fixture.group()) == (before, group)


def test_an_edit_of_the_bucket_is_rejected_and_nothing_is_written(sink_fixture: SinkFixture, tmp_path: Path) -> None:
    log = SyntheticLog(records=25)
    sink_fixture.run(log, DONE, flush_size=10)
    other = other_bucket(sink_fixture, tmp_path / "other")
    with pytest.raises(ConfigurationError, match=f"spec.s3.bucket was {sink_fixture.bucket}"):
        other.run(log, DONE, flush_size=10)
    assert everything(other) == {}


def test_the_sink_continues_after_the_previous_value_is_restored(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    log = SyntheticLog(records=40)
    with pytest.raises(ConfigurationError):
        sink_fixture.run(log, DONE, flush_size=10, spec=edited(sink_fixture, topicsDir="lake"))
    sink_fixture.run(log, ALL, flush_size=10)
    assert sorted(offset for key in sink_fixture.contents() for offset in sink_fixture.offsets(key)) == list(range(40))


def test_a_new_ledger_continues_after_the_published_objects(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.run(SyntheticLog(records=25), PUBLISH, flush_size=10)
    log, spec = SyntheticLog(records=40), edited(sink_fixture, topicsDir="lake")
    started = StopCondition(until_caught_up=True, publish_open=True, start_new_ledger=True)
    sink_fixture.run(log, started, flush_size=10, spec=spec)
    offsets = {key: sink_fixture.offsets(key) for key in sink_fixture.contents()}
    assert sorted(offset for each in offsets.values() for offset in each) == list(range(40))
    assert min(each for key, found in offsets.items() if key.startswith("lake/") for each in found) == 25
    sink_fixture.run(log, ALL, flush_size=10, spec=spec)  # now the group's offsets refer to the new bucket
    with pytest.raises(ConfigurationError, match=r"spec.s3.topicsDir was lake"):
        sink_fixture.run(log, DONE, flush_size=10, spec=edited(sink_fixture, topicsDir="third"))


def test_a_new_ledger_starts_at_offsets_that_another_consumer_committed(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=25), DONE, flush_size=10)
    sink_fixture.set_group({"log-0": 12})
    (sink_fixture.folder / "group.metadata").write_text("{}")
    sink_fixture.run(SyntheticLog(records=25), ALL, flush_size=10, spec=edited(sink_fixture, topicsDir="lake"))
    assert "lake/log/partition=0/log+0+0000000012.json" in sink_fixture.contents()
