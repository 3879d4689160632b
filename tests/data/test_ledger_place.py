"""Ledger and staging in another place (`spec.s3.ledger`): another bucket, or another prefix of the objects' bucket."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devtools.chaos.drivers import VersioningGW
from devtools.faults.s3_proxy import FaultProxy, S3ErrorReply
from devtools.s3 import S3Server, credentials_secret, s3_client, s3_server
from sink_job.api.errors import (
    AccessDenied,
    BucketNotFound,
    ConfigurationError,
    InvalidCredentials,
    OwnershipConflict,
    TransientError,
)
from sink_job.cli.store_checks import Outcome, check_store
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.ownership import Owner
from sink_job.s3 import RetryPolicy
from tests.data.s3.test_access import WithUsers
from tests.data.test_crash_points import ALL, EFFECTS, GIVEN, LOG
from tests.data.test_repair import FIRST, repair, truncate
from tests.data.test_repair import GIVEN as REPAIRED
from tests.data.test_repair import LOG as LONG
from tests.support.forked import killed_at
from tests.support.s3_store import running
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import deep, findings

pytestmark = pytest.mark.data

CAUGHT_UP = StopCondition(until_caught_up=True)
KAFKA: dict[str, Any] = {"bootstrapServers": "127.0.0.1:9", "topics": ["log"]}
Place = Callable[[SinkFixture], SinkFixture]
PLACES: dict[str, Place] = {
    "another bucket": lambda sink: sink.with_other_ledger_bucket(),
    "another bucket and a prefix": lambda sink: sink.with_other_ledger_bucket("ledgers/of"),
    "another prefix": lambda sink: sink.with_ledger_in(sink.bucket, "ledgers"),
}
OWN = ["topics/_s3sink/default.log/owner.json", "topics/_s3sink/topics/log/json.json"]
"""What remains in the folder of ledgers below topicsDir."""


@pytest.fixture(scope="module")
def undisturbed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> SinkFixture:
    sink = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
    sink.run(LOG, ALL, **GIVEN)
    return sink


@pytest.mark.parametrize("place", PLACES)
def test_the_objects_are_the_same_wherever_the_ledger_is(
    s3: S3Server, undisturbed: SinkFixture, tmp_path: Path, place: str
) -> None:
    sink = PLACES[place](SinkFixture.new(s3.endpoint, tmp_path))
    sink.run(LOG, ALL, **GIVEN)
    assert sink.contents() == undisturbed.contents()
    assert sink.group() == undisturbed.group()
    assert sink.orphans() == []
    below = [listed.key for listed in sink.s3.list("topics/") if "/_s3sink/" in listed.key]
    assert below == OWN
    assert {key.split("/_s3sink/")[0] for key in sink.internal_keys() if key not in OWN} == {
        f"{sink.settings.ledger.front}topics" if sink.settings.ledger else ""
    }


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_crash_at_any_effect_leaves_the_same_objects_and_no_orphans_in_both_buckets(
    s3: S3Server, undisturbed: SinkFixture, tmp_path: Path, effect: str
) -> None:
    nth, killed, most = 0, True, 9 if effect == "a probe, an owner or the claim" else 2
    while killed and nth < most:
        nth += 1
        folder = tmp_path / str(nth)
        folder.mkdir()
        sink = SinkFixture.new(s3.endpoint, folder).with_other_ledger_bucket()
        with FaultProxy(s3.endpoint) as proxy:
            work = partial(sink.through(proxy).run, LOG, ALL, **GIVEN)
            killed = killed_at(work, proxy, EFFECTS[effect], "after", nth)
            sink.through(proxy).run(LOG, ALL, **GIVEN)
        assert sink.contents() == undisturbed.contents()
        assert sink.group() == undisturbed.group()
        assert sink.orphans_after(ALL, LOG, GIVEN) == []
    assert nth > 1, "the effect does not occur"


@pytest.mark.parametrize("fails", ["objects", "ledger"])
def test_a_bucket_that_stops_to_answer_ends_the_driver_and_the_next_one_leaves_the_same_objects(
    s3: S3Server, undisturbed: SinkFixture, tmp_path: Path, fails: str
) -> None:
    nth, outages = 1, 0
    while True:
        folder = tmp_path / str(nth)
        folder.mkdir()
        sink = impatient(SinkFixture.new(s3.endpoint, folder).with_other_ledger_bucket())
        name = sink.bucket if fails == "objects" else sink.s3.of_ledger.bucket
        with FaultProxy(s3.endpoint) as proxy:
            proxy.when(lambda r: r.bucket == name, S3ErrorReply(503, "SlowDown"), nth=nth, times=None)  # noqa: B023
            message = ended(sink.through(proxy))
        if message is None:
            break
        assert f"s3://{name}" in message
        sink.run(LOG, ALL, **GIVEN)
        assert sink.contents() == undisturbed.contents()
        assert sink.group() == undisturbed.group()
        assert sink.orphans_after(ALL, LOG, GIVEN) == []
        nth, outages = nth + 7, outages + 1
    assert outages > 3


def ended(sink: SinkFixture) -> str | None:
    """The error that ends a run because a bucket does not answer; None without an error."""
    try:
        sink.run(LOG, ALL, **GIVEN)
    except TransientError as error:
        return str(error)
    return None


def impatient(sink: SinkFixture) -> SinkFixture:
    """The same sink, which gives up soon."""
    place, retry = sink.settings.ledger, RetryPolicy(max_elapsed_s=0.05, first_s=0.01, cap_s=0.02)
    assert place is not None
    ledger = replace(place, settings=replace(place.settings, retry=retry))
    return replace(sink, settings=replace(sink.settings, retry=retry, ledger=ledger))


# -- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_a_damaged_object_is_restored_and_its_bytes_kept_beside_the_ledger(
    sink_fixture: SinkFixture, place: str
) -> None:
    sink = PLACES[place](sink_fixture)
    sink.run(LONG, ALL, **REPAIRED)
    right = sink.contents()
    truncate(sink)
    damaged = sink.content(FIRST)
    assert findings(deep(sink, LONG, **REPAIRED)) != []
    assert repair(sink, LONG, **REPAIRED).exit_code == 0
    assert sink.contents() == right
    assert findings(deep(sink, LONG, **REPAIRED)) == []
    root = sink.ledger_access().root
    (kept,) = sink.s3.list(f"{root}repair/")
    assert sink.content(kept.key) == damaged
    assert sink.orphans() == []


def test_a_reset_starts_a_generation_with_the_same_ledger(sink_fixture: SinkFixture) -> None:
    sink, log = sink_fixture.with_other_ledger_bucket("ledgers"), SyntheticLog(records=25)
    sink.run(log, CAUGHT_UP, flush_size=10)
    assert sink.reset(log, "Earliest", on_existing="NewPrefix").generation == 2
    sink.run(log, ALL, flush_size=10)
    below = [key for key in sink.contents() if key.startswith("topics/generation=2/")]
    assert sorted(offset for key in below for offset in sink.offsets(key)) == list(range(25))
    assert findings(sink.verify(log)) == []
    assert sink.discard().partitions == ()


def forget_offsets(sink: SinkFixture) -> dict[Path, bytes]:
    """Deletes the offsets of the group, as if it had expired; returns its files."""
    files = {file: file.read_bytes() for file in sink.folder.glob("group*")}
    for file in files:
        file.unlink()
    return files


# -- the place is set once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_offsets", [True, False])
@pytest.mark.parametrize(("before", "after"), [(None, "a"), ("a", None), ("a", "b")])
def test_another_place_is_rejected_and_the_way_out_copies_each_record_once(
    s3: S3Server, sink_fixture: SinkFixture, before: str | None, after: str | None, has_offsets: bool
) -> None:
    def placed(prefix: str | None) -> SinkFixture:
        return sink_fixture if prefix is None else sink_fixture.with_ledger_in(sink_fixture.bucket, f"ledgers/{prefix}")

    log = SyntheticLog(records=25)
    placed(before).run(log, CAUGHT_UP, flush_size=10)
    kept: dict[Path, bytes] = {}
    if not has_offsets:
        kept = forget_offsets(sink_fixture)
    keys = sorted(listed.key for listed in sink_fixture.s3.list(""))
    with pytest.raises(ConfigurationError, match=r"spec\.s3\.ledger.* --start-new-ledger --take-over: a new") as raised:
        placed(after).run(log, CAUGHT_UP, flush_size=10)
    assert "was written" in str(raised.value)
    assert sorted(listed.key for listed in sink_fixture.s3.list("")) == keys
    for file, content in kept.items():
        file.write_bytes(content)
    placed(before).run(log, StopCondition(publish_open=True), flush_size=10)
    way_out = StopCondition(until_caught_up=True, publish_open=True, start_new_ledger=True, take_over=True)
    longer = SyntheticLog(records=40)
    placed(after).run(longer, way_out, flush_size=10)
    placed(after).run(longer, ALL, flush_size=10)
    assert sorted(offset for key in sink_fixture.keys() for offset in sink_fixture.offsets(key)) == list(range(40))  # noqa: SIM118
    with pytest.raises(ConfigurationError, match=r"spec\.s3\.ledger"):
        placed(before).run(longer, ALL, flush_size=10)


def test_two_sinks_with_ledgers_in_different_places_do_not_write_one_topic(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=25)
    sink_fixture.run(log, CAUGHT_UP, flush_size=10)
    other = sink_fixture.with_other_ledger_bucket()
    forget_offsets(other)
    with pytest.raises(OwnershipConflict, match=r"topic log as \.json below .* belongs to S3Sink default/log"):
        other.run(log, CAUGHT_UP, flush_size=10, name="other", spec={"kafka": {**KAFKA, "groupId": "other"}})


def test_a_sink_does_not_take_over_from_one_with_a_ledger_in_another_place(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=25)
    sink_fixture.run(log, CAUGHT_UP, flush_size=10)
    other = sink_fixture.with_other_ledger_bucket()
    forget_offsets(other)
    goal = StopCondition(until_caught_up=True, take_over_from=Owner("function", "default", "log", "default.log"))
    with pytest.raises(ConfigurationError, match=r"The place of a ledger is set once"):
        other.run(log, goal, flush_size=10, name="other", spec={"kafka": {**KAFKA, "groupId": "other"}})


def test_a_sink_takes_over_from_one_with_its_ledger_in_the_same_place(sink_fixture: SinkFixture) -> None:
    sink, log = sink_fixture.with_other_ledger_bucket(), SyntheticLog(records=25)
    sink.run(log, CAUGHT_UP, flush_size=10)
    goal = StopCondition(
        until_caught_up=True, publish_open=True, take_over_from=Owner("function", "default", "log", "default.log")
    )
    sink.run(log, goal, flush_size=10, name="other", spec={"kafka": {**KAFKA, "groupId": "other"}})
    assert sorted(offset for key in sink.contents() for offset in sink.offsets(key)) == list(range(25))


# -- the buckets -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def versioning_server() -> Iterator[S3Server]:
    """A server that keeps versions."""
    with s3_server(VersioningGW) as server:
        yield server


def locked_bucket(server: S3Server) -> str:
    """A new bucket with a default retention."""
    name, client = f"r-{uuid.uuid4().hex[:12]}", s3_client(server.endpoint)
    client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    client.put_object_lock_configuration(
        Bucket=name,
        ObjectLockConfiguration={
            "ObjectLockEnabled": "Enabled",
            "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}},
        },
    )
    return name


@pytest.fixture(params=["s3", "versioning_server"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> SinkFixture:
    """A sink whose objects are in a bucket with a default retention, and its ledger in another one."""
    server: S3Server = request.getfixturevalue(request.param)
    folder = tmp_path / "archive"
    folder.mkdir()
    sink = SinkFixture.new(server.endpoint, folder)
    return replace(sink, settings=replace(sink.settings, bucket=locked_bucket(server))).with_other_ledger_bucket()


def test_a_bucket_with_a_default_retention_has_objects_and_two_files_of_the_owner(archive: SinkFixture) -> None:
    for records in (25, 40):
        archive.run(SyntheticLog(records=records), ALL, flush_size=10)
    assert findings(deep(archive, SyntheticLog(records=40))) == []
    versions = s3_client(archive.endpoint).list_object_versions(Bucket=archive.bucket)
    assert "DeleteMarkers" not in versions
    assert sorted(each["Key"] for each in versions["Versions"]) == sorted([*OWN, *archive.contents()])


def test_a_default_retention_of_the_ledgers_bucket_is_rejected(s3: S3Server, sink_fixture: SinkFixture) -> None:
    bucket = locked_bucket(s3)
    with pytest.raises(ConfigurationError, match=rf"s3://{bucket}: the bucket has a default retention"):
        sink_fixture.with_ledger_in(bucket).run(SyntheticLog(), CAUGHT_UP, flush_size=10)


def test_check_store_checks_both_buckets_and_leaves_nothing_in_a_locked_one(archive: SinkFixture) -> None:
    clock = archive.s3.server_now_ms
    checks = {each.name: each.outcome for each in check_store(archive.s3, "topics/_s3sink/a/", clock)}
    skipped = {name for name, outcome in checks.items() if outcome is Outcome.SKIPPED}
    assert skipped == {"conditional writes", "multipart upload"}
    names = {"ledger: object lock", "ledger: conditional writes", "ledger: lifecycle rules"}
    assert {name for name in checks if name.startswith("ledger: ")} == names
    assert Outcome.FAILED not in checks.values()
    assert "Versions" not in s3_client(archive.endpoint).list_object_versions(Bucket=archive.bucket)
    assert list(archive.s3.of_ledger.list("")) == []


# -- credentials -----------------------------------------------------------------------------------------------------


def test_invalid_keys_for_the_ledgers_bucket_are_reported_as_such(sink_fixture: SinkFixture, tmp_path: Path) -> None:
    keys = credentials_secret(tmp_path / "wrong", access_key="stranger", secret_key="stranger-secret")
    sink = sink_fixture.with_ledger_in(sink_fixture.bucket, "ledgers", keys)
    with pytest.raises(InvalidCredentials) as raised:
        sink.run(SyntheticLog(), CAUGHT_UP, flush_size=10)
    assert "fix the Secret referenced by spec.s3.ledger.credentials. This is the bucket of spec.s3.ledger" in str(
        raised.value
    )
    assert "stranger" not in str(raised.value)
    assert sink_fixture.keys() == []


def test_a_missing_bucket_of_the_ledger_is_reported_with_its_field(sink_fixture: SinkFixture) -> None:
    sink = sink_fixture.with_ledger_in("no-such-bucket")
    with pytest.raises(BucketNotFound, match=r"s3://no-such-bucket: .* fix spec\.s3\.ledger\.bucket"):
        sink.s3.check_access()


def test_two_users_of_which_each_may_use_one_bucket(tmp_path: Path) -> None:
    folder = tmp_path / "sink"
    folder.mkdir()
    with running(WithUsers(tmp_path)) as server:
        keys = {}
        for name in ("objects", "ledger"):
            server.add_user(f"{name}-access", f"{name}-secret")
            keys[name] = credentials_secret(tmp_path / name, access_key=f"{name}-access", secret_key=f"{name}-secret")
        sink = SinkFixture.new(server.endpoint, folder).with_other_ledger_bucket()
        assert sink.settings.ledger is not None
        ledger = sink.settings.ledger.settings.bucket
        for bucket, name in ((sink.bucket, "objects"), (ledger, "ledger")):
            s3_client(server.endpoint).put_bucket_policy(Bucket=bucket, Policy=policy(bucket, f"{name}-access"))
        sink = replace(sink, settings=replace(sink.settings, credentials_dir=keys["objects"]))
        sink = sink.with_ledger_in(ledger, None, keys["ledger"])
        log = SyntheticLog(records=25)
        sink.run(log, ALL, flush_size=10)
        assert findings(deep(sink, log)) == []
        with pytest.raises(AccessDenied, match=r"This is the bucket of spec\.s3\.ledger"):
            sink.with_ledger_in(ledger).s3.check_access()


def policy(bucket: str, user: str) -> str:
    """A policy that lets a user do everything in a bucket."""
    where = f"arn:aws:s3:::{bucket}"
    allowed = {"Effect": "Allow", "Principal": {"AWS": [user]}, "Action": "s3:*", "Resource": [where, f"{where}/*"]}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
