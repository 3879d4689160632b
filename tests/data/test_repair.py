"""`s3sink repair` on a real S3 server: every kind of damage, with and without versions, beside a running sink."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devtools.chaos.drivers import VersioningGW
from devtools.faults.s3_proxy import FaultProxy
from devtools.s3 import S3Server, s3_client, s3_server
from devtools.schema_registry.server import schema_registry
from sink_job.api.enums import OutputFormat
from sink_job.coordinator.context import StopCondition
from sink_job.formats.compression import Zstd, zstd
from sink_job.maintenance.repair.accepted_loss import AcceptedLosses, accept_losses
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.kafka_source import KafkaReader, KafkaSource
from sink_job.maintenance.repair.repairer import Repairer, RepairRequest
from sink_job.maintenance.repair.results import RepairOutcome, RepairReport, Source
from tests.support.schema_log import SchemaLog, run, seed, settings
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, InlineEngine, SyntheticLog, sink_of_text
from tests.support.verify_sink import CAUGHT_UP, ROOT, deep, evidence, findings

pytestmark = pytest.mark.data

LOG = SyntheticLog(records=25, value_bytes=700_000)
"""Objects of ten records have two parts."""
GIVEN: dict[str, Any] = {"flush_size": 10, "max_records": 10, "part_size": "5Mi"}
FIRST = "topics/log/partition=0/log+0+0000000000.json"
SECOND = "topics/log/partition=0/log+0+0000000010.json"
WRITES = {
    "PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload",
    "DeleteObjects",
}  # fmt: skip


@pytest.fixture(scope="module")
def versioning_server() -> Iterator[S3Server]:
    """A server that keeps versions."""
    with s3_server(VersioningGW) as server:
        yield server


@pytest.fixture
def plain(sink_fixture: SinkFixture) -> SinkFixture:
    sink_fixture.run(LOG, CAUGHT_UP, **GIVEN)
    return sink_fixture


@pytest.fixture
def versioned(versioning_server: S3Server, tmp_path: Path) -> SinkFixture:
    folder = tmp_path / "versioned"
    folder.mkdir()
    fixture = SinkFixture.new(versioning_server.endpoint, folder)
    client = s3_client(versioning_server.endpoint)
    client.put_bucket_versioning(Bucket=fixture.bucket, VersioningConfiguration={"Status": "Enabled"})
    fixture.run(LOG, CAUGHT_UP, **GIVEN)
    return fixture


@pytest.fixture(params=["plain", "versioned"])
def sink(request: pytest.FixtureRequest) -> SinkFixture:
    fixture: SinkFixture = request.getfixturevalue(request.param)
    return fixture


def repair(
    fixture: SinkFixture,
    log: SyntheticLog = LOG,
    keys: Collection[str] = (),
    *,
    accepts: bool = False,
    **given: Any,
) -> RepairReport:
    given = {**GIVEN, **given}

    def accept_loss(lost: Sequence[Suspect]) -> AcceptedLosses:
        return accept_losses(fixture.ledger_access(), source.evidence.current.state.generation, lost)

    spec = sink_of_text(fixture.manifest(**given))
    source = KafkaSource(
        s3=fixture.s3,
        settings=fixture.settings,
        evidence=evidence(fixture, log, **given),
        errors=spec.spec.errors,
        now=CLOCK_MS,
    )
    reader = KafkaReader(FileConsumerGroup(log, fixture.folder / "group.json"), InlineEngine(log))
    request = RepairRequest(keys=keys, accept_loss=accept_loss if accepts else None)
    repairer = Repairer(fixture.s3, source, uuid.uuid4().hex, connect=lambda: reader, request=request)
    return repairer.run(spec.sink_id)


def delete(fixture: SinkFixture) -> None:
    fixture.s3.delete([FIRST])


def truncate(fixture: SinkFixture) -> None:
    content = fixture.content(FIRST)
    fixture.put(FIRST, content[: len(content) // 2])


def overwrite(fixture: SinkFixture) -> None:
    fixture.put(FIRST, fixture.content(FIRST)[::-1])


def overwrite_with_another_object(fixture: SinkFixture) -> None:
    fixture.put(FIRST, fixture.content(SECOND))


DAMAGES = [delete, truncate, overwrite, overwrite_with_another_object]


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_object_has_its_recorded_bytes_and_etag_again(
    sink: SinkFixture, damage: Callable[[SinkFixture], None]
) -> None:
    right, etags = sink.contents(), sink.etags()
    damage(sink)
    damaged = sink.contents().get(FIRST)
    assert findings(deep(sink, LOG, **GIVEN)) != []
    report = repair(sink)
    (restored,) = report.objects
    is_versioned = sink.s3.keeps_versions()
    assert (restored.outcome, restored.source) == (
        RepairOutcome.RESTORED,
        Source.VERSION if is_versioned else Source.KAFKA,
    )
    assert (sink.contents(), sink.etags()) == (right, etags)
    assert findings(deep(sink, LOG, **GIVEN)) == []
    assert sink.orphans() == []
    kept = {key.key: sink.content(key.key) for key in sink.s3.list(f"{ROOT}repair/")}
    assert list(kept.values()) == ([] if damaged is None else [damaged])


def test_an_undamaged_bucket_is_not_written_to(plain: SinkFixture, s3_proxy: FaultProxy) -> None:
    assert repair(plain.through(s3_proxy), keys=[FIRST]).objects == ()
    assert repair(plain.through(s3_proxy)).objects == ()
    kinds = {request.kind for request in s3_proxy.requests}
    assert "HeadObject" in kinds
    assert kinds.isdisjoint(WRITES)


def test_bytes_that_a_disk_has_changed_are_restored_if_the_object_is_named(plain: SinkFixture, s3: S3Server) -> None:
    right = plain.contents()
    (path,) = s3.directory.rglob(f"{plain.bucket}/{FIRST}")
    path.write_bytes(path.read_bytes()[::-1])
    assert repair(plain).objects == ()
    (restored,) = repair(plain, keys=[FIRST]).objects
    assert restored.outcome is RepairOutcome.RESTORED
    assert plain.contents() == right
    assert findings(deep(plain, LOG, **GIVEN)) == []


@pytest.mark.parametrize("damage", [delete, truncate])
def test_several_commands_at_once_leave_the_recorded_bytes(
    sink: SinkFixture, damage: Callable[[SinkFixture], None]
) -> None:
    right = sink.contents()
    damage(sink)
    with ThreadPoolExecutor(3) as commands:
        reports = list(commands.map(lambda _: repair(sink), range(3)))
    assert {o.outcome for report in reports for o in report.objects} == {RepairOutcome.RESTORED}
    assert sink.contents() == right
    assert sink.orphans() == []


def test_objects_are_restored_beside_a_running_sink(sink_fixture: SinkFixture) -> None:
    given = {**GIVEN, "max_records": 2}
    whole = SyntheticLog(records=400)
    sink_fixture.run(SyntheticLog(records=25), CAUGHT_UP, **given)
    right = sink_fixture.contents()
    driver = sink_fixture.start(whole, StopCondition(until_caught_up=True, publish_open=True), **given)
    for damage in DAMAGES:
        damage(sink_fixture)
        assert [o.outcome for o in repair(sink_fixture, whole, [FIRST]).objects] == [RepairOutcome.RESTORED]
    assert driver.wait() == 0
    contents = sink_fixture.contents()
    assert {key: contents[key] for key in right if key in contents} == right
    assert findings(deep(sink_fixture, whole, **given)) == []
    assert sink_fixture.orphans() == []


def test_an_accepted_loss_is_no_finding_of_a_deep_verification_beside_the_sink_that_continues(
    sink_fixture: SinkFixture,
) -> None:
    given = {**GIVEN, "max_records": 2}
    whole = SyntheticLog(records=60)
    sink_fixture.run(SyntheticLog(records=25), CAUGHT_UP, **given)
    overwrite(sink_fixture)
    left = SyntheticLog(records=60, starts_at=5)
    assert repair(sink_fixture, left, **given).exit_code == 5
    report = repair(sink_fixture, left, accepts=True, **given)
    assert [o.outcome for o in report.objects] == [RepairOutcome.LOSS_ACCEPTED]
    assert findings(deep(sink_fixture, left, **given)) == []
    sink_fixture.run(left, CAUGHT_UP, **given)
    assert findings(deep(sink_fixture, left, **given)) == []
    assert repair(sink_fixture, whole, keys=[FIRST], **given).exit_code == 0
    assert findings(deep(sink_fixture, whole, **given)) == []
    assert sink_fixture.orphans() == []


def test_another_version_of_the_library_that_compresses_replaces_nothing(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SyntheticLog(records=25)
    given = {**GIVEN, "compression": "Zstd"}
    sink_fixture.run(log, CAUGHT_UP, **given)
    key = f"{FIRST}.zst"
    sink_fixture.put(key, b"damaged")
    monkeypatch.setattr(Zstd, "library", "zstd 99.0.0")
    monkeypatch.setattr(Zstd, "compress", lambda _, rows: zstd.compress(bytes(rows) + b"\n", level=1))
    report = repair(sink_fixture, log, **given)
    (left,) = report.objects
    assert (left.outcome, report.exit_code) == (RepairOutcome.NOT_RESTORABLE, 5)
    assert "installed is zstd 99.0.0. Run this command with the recorded version" in left.message
    assert sink_fixture.content(key) == b"damaged"
    assert sink_fixture.orphans() == []
    monkeypatch.undo()
    assert repair(sink_fixture, log, **given).exit_code == 0
    assert findings(deep(sink_fixture, log, **given)) == []


class InvalidLog(SyntheticLog):
    """A log of which every third record is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return b"{%d" % offset if offset % 3 == 2 else super().value(partition, offset)


REJECTED = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}


@pytest.mark.parametrize(
    ("log", "given"),
    [
        (SyntheticLog(records=45), {"compression": "Gzip"}),
        (SyntheticLog(records=45), {"compression": "Zstd"}),
        (SyntheticLog(records=45, paths=3, gaps=frozenset({4, 17})), {"paths": True}),
        (SyntheticLog(records=45, paths=3), {"paths": True, "scope": "Object", "max_records": 7}),
        (InvalidLog(records=45), {"errors": REJECTED, "max_records": 7}),
    ],
    ids=["gzip", "zstd", "paths", "paths of scope Object", "dead letters"],
)
def test_all_objects_of_a_bucket_are_restored_from_kafka(
    sink_fixture: SinkFixture, log: SyntheticLog, given: dict[str, Any]
) -> None:
    given = {**GIVEN, **given}
    sink_fixture.run(log, CAUGHT_UP, **given)
    sink_fixture.run(log, CAUGHT_UP, **given)
    right, etags = sink_fixture.contents(), sink_fixture.etags()
    sink_fixture.s3.delete(right)
    report = repair(sink_fixture, log, **given)
    assert {o.key: o.outcome for o in report.objects} == dict.fromkeys(right, RepairOutcome.RESTORED)
    assert (sink_fixture.contents(), sink_fixture.etags()) == (right, etags)
    assert findings(deep(sink_fixture, log, **given)) == []
    assert sink_fixture.orphans() == []


@pytest.mark.parametrize("output", [OutputFormat.AVRO, OutputFormat.PARQUET])
def test_objects_with_schemas_of_a_registry_are_restored_without_the_registry(
    sink_fixture: SinkFixture, output: OutputFormat
) -> None:
    log = SchemaLog(records=21, padding=300, output=output)
    with schema_registry() as server:
        seed(server, log)
        run(sink_fixture, log, CAUGHT_UP, server.url)
        run(sink_fixture, log, CAUGHT_UP, server.url)
        given = settings(log, server.url)
    right, etags = sink_fixture.contents(), sink_fixture.etags()
    sink_fixture.s3.delete(right)
    report = repair(sink_fixture, log, **given)
    assert {o.key: o.outcome for o in report.objects} == dict.fromkeys(right, RepairOutcome.RESTORED)
    assert (sink_fixture.contents(), sink_fixture.etags()) == (right, etags)
    assert findings(deep(sink_fixture, log, **given)) == []


def test_objects_of_a_schema_that_the_ledger_no_longer_has_name_the_command_that_deletes_it(
    sink_fixture: SinkFixture,
) -> None:
    log = SchemaLog(records=21)
    with schema_registry() as server:
        seed(server, log)
        run(sink_fixture, log, CAUGHT_UP, server.url)
        given = settings(log, server.url)
    sink_fixture.s3.delete([*sink_fixture.keys(), f"{ROOT}schemas/log/1.json", f"{ROOT}schemas/log/2.json"])
    without_cache = replace(sink_fixture, settings=replace(sink_fixture.settings, max_connections=3))
    report = repair(without_cache, log, **given)
    assert report.exit_code == 5
    assert all("deleted (s3sink forget-schema)" in o.message for o in report.objects)
    assert sink_fixture.orphans() == []


def test_an_object_of_an_ended_generation_is_restored(plain: SinkFixture) -> None:
    plain.reset(LOG, "Latest", on_existing="NewPrefix", **GIVEN)
    more = SyntheticLog(records=35, value_bytes=700_000)
    plain.run(more, CAUGHT_UP, **GIVEN)
    right = plain.contents()
    delete(plain)
    assert [o.outcome for o in repair(plain, more).objects] == [RepairOutcome.RESTORED]
    assert plain.contents() == right


def test_objects_under_previous_settings_are_restored_under_those(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=45)
    sink_fixture.run(SyntheticLog(records=25), CAUGHT_UP, **{**GIVEN, "compression": "Gzip"})
    given = {**GIVEN, "compression": "None"}
    sink_fixture.run(log, CAUGHT_UP, **given)
    right = sink_fixture.contents()
    assert {key.rpartition(".")[2] for key in right} == {"gz", "json"}
    sink_fixture.s3.delete(right)
    assert repair(sink_fixture, log, **given).exit_code == 0
    assert sink_fixture.contents() == right
