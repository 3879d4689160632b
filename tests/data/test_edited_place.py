"""Edits of what keys and the ledger's place are made of.

`s3.directoryDelimiter` is a change of settings like any other; edits of `s3.topicsDir` and `s3.bucket` would lose sight
of the ledger, and are refused.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.coordinator.context import StopCondition
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)
PUBLISH = StopCondition(publish_open=True)
LEDGER = "topics/_s3sink/default.log/"


def edited(place: Place, *, sink_id: str | None = None, **s3: Any) -> dict[str, Any]:
    """Settings with these fields of spec.s3, or with this sinkId."""
    fixed = {
        "bucket": place.bucket,
        "endpoint": place.endpoint,
        "region": "us-east-1",
        "pathStyle": True,
        "partSize": "5Mi",
    }
    return {"s3": {**fixed, **s3}} | ({"sinkId": sink_id} if sink_id else {})


def everything(place: Place) -> dict[str, str]:
    """All keys of the bucket with their ETags, and unfinished uploads."""
    found = {listed.key: listed.etag for listed in place.s3.list("")}
    return found | {upload.upload_id: upload.key for upload in place.s3.list_uploads("")}


def elsewhere(place: Place, folder: Path) -> Place:
    """Another bucket, with the same Kafka."""
    folder.mkdir()
    return replace(Place.new(place.endpoint, folder), folder=place.folder)


# -- directoryDelimiter -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value_bytes", [100, 1_000_000], ids=["staged", "uploaded"])
@pytest.mark.parametrize("scope", ["Partition", "Object"])
@pytest.mark.parametrize(("before", "after"), [("/", "-"), ("-", "/"), ("|", "--")])
def test_an_edit_of_the_directory_delimiter_leaves_each_record_in_one_object(
    place: Place, before: str, after: str, scope: str, value_bytes: int
) -> None:
    given: dict[str, Any] = {"flush_size": 4, "scope": scope, "paths": True}
    log = FunctionLog(records=17, paths=3, value_bytes=value_bytes)
    place.run(log, DONE, **given, spec=edited(place, directoryDelimiter=before))
    grown = replace(log, records=40)
    new = edited(place, directoryDelimiter=after)
    place.run(grown, ALL, **given, spec=new)
    offsets = {key: place.offsets(key) for key in place.bodies()}
    assert sorted(offset for each in offsets.values() for offset in each) == list(range(40))
    assert any(f"log{after}kind=k0{after}log+" in key for key in offsets)
    assert place.group() == {"log-0": 40}
    assert [verdict.findings for verdict in place.verify(grown, **given, spec=new)] == [()]
    assert place.litter_after(ALL, grown, {**given, "spec": new}) == []
    ledgers = {listed.key.split("_s3sink/")[0] for listed in place.s3.list("") if "_s3sink/" in listed.key}
    assert ledgers == {"topics/"}


def test_an_object_under_a_former_delimiter_that_no_list_names_is_found(place: Place) -> None:
    log = FunctionLog(records=20)
    place.run(log, DONE, flush_size=10)
    new = edited(place, directoryDelimiter="-")
    place.run(log, DONE, flush_size=10, spec=new)
    place.put("topics/log/partition=0/log+0+0000000005.json", b"{}")
    (verdict,) = place.verify(log, spec=new)
    assert [(found.type.value, found.offset) for found in verdict.findings] == [("UntrackedObject", 5)]


def test_an_object_under_a_former_delimiter_is_in_the_way_of_a_reset(place: Place) -> None:
    log = FunctionLog(records=20)
    place.run(log, DONE, flush_size=10)
    new = edited(place, directoryDelimiter="-")
    place.run(log, DONE, flush_size=10, spec=new)
    with pytest.raises(ConfigurationError, match=r"log/partition=0/log\+0\+0000000000.json"):
        place.reset(log, "Earliest", spec=new)


# -- topicsDir and bucket ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [DONE, ALL])
@pytest.mark.parametrize(
    ("field", "old", "edit"),
    [
        ("spec.s3.topicsDir", "topics", {"topicsDir": "lake"}),
        ("spec.s3.topicsDir", "topics", {"topicsDir": ""}),
        ("spec.s3.topicsDir", "topics", {"topicsDir": "lake", "sink_id": "other"}),
    ],
)
def test_an_edit_that_loses_sight_of_the_ledger_is_refused_and_nothing_is_written(
    place: Place, field: str, old: str, edit: dict[str, Any], goal: StopCondition
) -> None:
    log = FunctionLog(records=25)
    place.run(log, DONE, flush_size=10)
    before, group = everything(place), place.group()
    with pytest.raises(ConfigurationError) as error:
        place.run(replace(log, records=40), goal, flush_size=10, spec=edited(place, **edit))
    assert f"{field} was {old}" in str(error.value)
    assert f"s3://{place.bucket}/{LEDGER}" in str(error.value)
    assert error.value.exit_code == 7
    assert (everything(place), place.group()) == (before, group)


def test_an_edit_of_the_bucket_is_refused_and_nothing_is_written(place: Place, tmp_path: Path) -> None:
    log = FunctionLog(records=25)
    place.run(log, DONE, flush_size=10)
    other = elsewhere(place, tmp_path / "other")
    with pytest.raises(ConfigurationError, match=f"spec.s3.bucket was {place.bucket}"):
        other.run(log, DONE, flush_size=10)
    assert everything(other) == {}


def test_with_the_old_value_back_the_sink_continues(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    log = FunctionLog(records=40)
    with pytest.raises(ConfigurationError):
        place.run(log, DONE, flush_size=10, spec=edited(place, topicsDir="lake"))
    place.run(log, ALL, flush_size=10)
    assert sorted(offset for key in place.bodies() for offset in place.offsets(key)) == list(range(40))


def test_a_new_ledger_after_all_is_published_continues_behind_it(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.run(FunctionLog(records=25), PUBLISH, flush_size=10)
    log, spec = FunctionLog(records=40), edited(place, topicsDir="lake")
    started = StopCondition(until_caught_up=True, publish_open=True, start_new_ledger=True)
    place.run(log, started, flush_size=10, spec=spec)
    offsets = {key: place.offsets(key) for key in place.bodies()}
    assert sorted(offset for each in offsets.values() for offset in each) == list(range(40))
    assert min(each for key, found in offsets.items() if key.startswith("lake/") for each in found) == 25
    place.run(log, ALL, flush_size=10, spec=spec)  # from here on the group's offsets name the new one
    with pytest.raises(ConfigurationError, match=r"spec.s3.topicsDir was lake"):
        place.run(log, DONE, flush_size=10, spec=edited(place, topicsDir="third"))


def test_offsets_that_another_consumer_committed_are_where_a_new_ledger_starts(place: Place) -> None:
    place.run(FunctionLog(records=25), DONE, flush_size=10)
    place.set_group({"log-0": 12})
    (place.folder / "group.marks").write_text("{}")
    place.run(FunctionLog(records=25), ALL, flush_size=10, spec=edited(place, topicsDir="lake"))
    assert "lake/log/partition=0/log+0+0000000012.json" in place.bodies()
