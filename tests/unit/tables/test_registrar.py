"""Registrations beside the rounds of a driver."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from sink_job.api.enums import OutputFormat
from sink_job.api.errors import SinkError, TableNotRegistered, TableReplaced, TransientError
from sink_job.api.report import TableReport, TableSums
from sink_job.s3 import S3Settings
from sink_job.tables import registrar as module
from sink_job.tables import sink_tables
from sink_job.tables.catalogs import CommitUnknown, IcebergCatalog, open_catalog
from sink_job.tables.file_io import clients_like
from sink_job.tables.registrar import Registrar
from tests.support.registered_sink import RegisteredSink

MINUTE = 60_000


class Progress:
    """What the driver has published, and the reports."""

    def __init__(self) -> None:
        self.published_of_topics: Mapping[str, int] | None = None
        self.reports: Sequence[TableReport] = ()
        self.sums: TableSums | None = None

    def tables(self, reports: Sequence[TableReport], sums: TableSums) -> None:
        self.reports, self.sums = reports, sums

    @property
    def only(self) -> TableReport:
        (found,) = self.reports
        return found


class RegisteringDriver:
    """A driver with a registrar, whose clock is set."""

    def __init__(self, sink: RegisteredSink) -> None:
        self.sink = sink
        self.progress = Progress()
        self.now = 1_000_000
        self.set_ms = 0
        """By how much the clock was set. The monotonic one is not."""
        self.written = 0

    def registrar(self, **given: Any) -> Registrar:
        sink = self.sink.fixture.sink
        s3: Any = self.sink.fixture.s3
        settings = S3Settings.of(sink.spec, {})
        clocks: Any = {"clock": lambda: self.now + self.set_ms, "steady": lambda: self.now}
        return Registrar(sink, settings, s3, self.progress, redact=_redact, **{**clocks, **given})

    def write(self, records: int) -> None:
        """Copies up to `records`, ten in an object; counts the objects of this driver."""
        self.sink.write(records)
        before = self.progress.published_of_topics or {"log": 0}
        added = -(-records // 10) - -(-self.written // 10)
        self.progress.published_of_topics = {"log": before["log"] + added}
        self.written = records

    def rows(self, name: str = "lake.log") -> int:
        table = self.catalog.load(name)
        return 0 if table is None else len(table.inspect.files())

    @property
    def catalog(self) -> IcebergCatalog:
        spec = self.sink.fixture.sink.spec
        return open_catalog(spec.tables[0].catalog, clients_like(S3Settings.of(spec, {})))


def _redact(text: str) -> str:
    return text.replace("secret", "***")


@pytest.fixture
def driver(registered_sink: RegisteredSink) -> RegisteringDriver:
    return RegisteringDriver(registered_sink)


@pytest.fixture
def requests(driver: RegisteringDriver) -> list[str]:
    """The requests to both buckets, from now on."""
    found: list[str] = []
    for bucket in (driver.sink.fixture.s3, driver.sink.lake):
        bucket.fault = lambda call, key: found.append(f"{call} {key}")
    return found


def test_nothing_is_registered_before_the_driver_has_recovered(driver: RegisteringDriver, requests: list[str]) -> None:
    driver.registrar().poll()
    assert requests == []
    assert driver.progress.sums is None


def test_avro_objects_are_registered(driver: RegisteringDriver) -> None:
    driver.sink.output = OutputFormat.AVRO
    driver.sink.describe("lake.{topic}")
    driver.write(25)
    registrar = driver.registrar()
    registrar.poll()
    driver.write(45)
    driver.now += 5 * MINUTE
    registrar.poll()
    report = driver.progress.only
    assert (report.objects, report.commits, report.lag_objects, report.reason) == (5, 2, 0, None)
    table = driver.catalog.load("lake.log")
    assert table is not None
    assert table.inspect.files()["file_format"].to_pylist() == ["AVRO"] * 5


def test_a_new_table_gets_what_earlier_drivers_have_published(driver: RegisteringDriver) -> None:
    driver.write(25)
    driver.progress.published_of_topics = {}
    driver.registrar().poll()
    assert driver.rows() == 3
    report = driver.progress.only
    assert (report.table, report.topic, report.objects, report.commits) == ("lake.log", "log", 3, 1)
    assert (report.lag_objects, report.reason, report.registered_at) == (0, None, driver.now)


def test_what_is_published_is_registered_once_per_interval(driver: RegisteringDriver) -> None:
    registrar = driver.registrar()
    driver.write(10)
    registrar.poll()
    driver.write(30)
    driver.now += 4 * MINUTE
    registrar.poll()
    assert (driver.rows(), driver.progress.only.lag_objects) == (1, 2)
    driver.now += MINUTE
    registrar.poll()
    assert (driver.rows(), driver.progress.only.lag_objects) == (3, 0)
    assert driver.progress.only.commits == 2


def test_a_clock_that_is_set_back_delays_no_registration(driver: RegisteringDriver) -> None:
    driver.write(20)
    registrar = driver.registrar()
    registrar.poll()
    driver.write(40)
    driver.set_ms = -15 * MINUTE
    driver.now += 5 * MINUTE
    registrar.poll()
    assert (driver.rows(), driver.progress.only.lag_objects, driver.progress.only.lag_ms) == (4, 0, 0)


def test_an_idle_table_costs_no_request(driver: RegisteringDriver, requests: list[str]) -> None:
    registrar = driver.registrar()
    driver.write(10)
    registrar.poll()
    requests.clear()
    for _ in range(5):
        driver.now += 10 * MINUTE
        registrar.poll()
    assert requests == []


def test_an_error_of_a_table_is_reported_and_tried_again(
    driver: RegisteringDriver, caplog: pytest.LogCaptureFixture
) -> None:
    registrar = driver.registrar()
    driver.write(10)
    registrar.poll()
    iceberg = driver.catalog._catalog
    iceberg.drop_table("lake.log")
    driver.write(25)
    driver.now += 5 * MINUTE
    registrar.poll()
    report = driver.progress.only
    assert (report.reason, report.lag_objects, report.record) == ("TableReplaced", 2, driver.progress.only.record)
    assert driver.progress.sums is not None
    assert driver.progress.sums.failing == 1
    driver.now += 5 * MINUTE
    registrar.poll()
    errors = [each for each in caplog.records if "TableReplaced" in each.getMessage()]
    assert len(errors) == 1
    assert driver.progress.only.lag_ms == 5 * MINUTE
    assert driver.sink.register("--accept", "TableReplaced", "--from-beginning") == 0
    driver.now += 5 * MINUTE
    registrar.poll()
    assert (driver.progress.only.reason, driver.progress.only.lag_objects, driver.rows()) == (None, 0, 3)


def test_missing_objects_are_an_error_or_are_counted(driver: RegisteringDriver) -> None:
    driver.write(40)
    del driver.sink.fixture.s3.objects[driver.sink.objects()[1]]
    driver.registrar().poll()
    assert (driver.progress.only.reason, driver.progress.only.skipped_objects) == ("TableNotRegistered", 0)
    driver.sink.describe("lake.{topic}", onMissing="Skip")
    driver.registrar().poll()
    report = driver.progress.only
    assert (report.reason, report.objects, report.lag_objects, report.skipped_objects) == (None, 3, 0, 1)
    assert driver.progress.sums is not None
    assert driver.progress.sums.skipped_objects == 1


def test_an_error_of_a_later_driver_shows_the_objects_that_were_skipped_before(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.sink.describe("lake.{topic}", onMissing="Skip")
    driver.write(40)
    del driver.sink.fixture.s3.objects[driver.sink.objects()[1]]
    driver.registrar().poll()

    def fails(*_: object) -> None:
        raise TransientError("no answer")

    monkeypatch.setattr(IcebergCatalog, "load", fails)
    driver.registrar().poll()
    assert (driver.progress.only.reason, driver.progress.only.skipped_objects) == ("TransientError", 1)


def test_a_table_of_another_program_is_not_filled_without_a_command(driver: RegisteringDriver) -> None:
    iceberg = driver.catalog._catalog
    iceberg.create_namespace("lake")
    iceberg.create_table("lake.log", Schema(NestedField(1, "id", LongType())))
    driver.write(20)
    driver.registrar().poll()
    assert (driver.progress.only.reason, driver.progress.only.lag_objects) == ("TableNotRegistered", 2)
    assert driver.rows() == 0


def test_an_unknown_outcome_is_an_error_without_secrets(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise CommitUnknown("the reply of secret was lost")

    driver.write(10)
    monkeypatch.setattr(IcebergCatalog, "commit", lost)
    registrar = driver.registrar()
    monkeypatch.setattr(registrar, "_wait", lambda seconds: None)
    registrar.poll()
    report = driver.progress.only
    assert (report.reason, report.lag_objects) == ("TransientError", 1)
    assert "of *** was" in (report.message or "")


def test_an_error_before_the_first_table_has_the_pattern(driver: RegisteringDriver, requests: list[str]) -> None:
    driver.write(10)

    def fails(call: str, key: str) -> None:
        raise OSError("the ledger cannot be read")

    driver.sink.fixture.s3.fault = fails
    registrar = driver.registrar()
    registrar.poll()
    assert (driver.progress.only.table, driver.progress.only.reason) == ("lake.{topic}", "InternalError")
    driver.sink.fixture.s3.fault = lambda call, key: None
    driver.now += 5 * MINUTE
    registrar.poll()
    assert (driver.progress.only.table, driver.progress.only.reason) == ("lake.log", None)


def test_a_catalog_that_cannot_be_opened_is_an_error_of_each_table(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise TransientError("the catalog does not answer")

    driver.write(25)
    with monkeypatch.context() as patch:
        patch.setattr(sink_tables, "open_any", fails)
        registrar = driver.registrar()
        registrar.poll()
        driver.now += 5 * MINUTE
        registrar.poll()
    report = driver.progress.only
    assert (report.table, report.reason) == ("lake.log", "TransientError")
    assert (report.lag_objects, report.lag_ms) == (3, 5 * MINUTE)
    driver.now += 5 * MINUTE
    registrar.poll()
    assert (driver.progress.only.reason, driver.progress.only.lag_ms, driver.rows()) == (None, 0, 3)


def test_after_a_thousand_failed_registrations_each_object_is_in_the_table_once(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise TransientError("the catalog does not answer")

    registrar = driver.registrar()
    with monkeypatch.context() as patch:
        patch.setattr(IcebergCatalog, "load", fails)
        for attempt in range(1_000):
            if attempt % 100 == 0:
                driver.write(driver.written + 15)
            driver.now += 5 * MINUTE
            registrar.poll()
    driver.now += 5 * MINUTE
    registrar.poll()
    table = driver.catalog.load("lake.log")
    assert table is not None
    paths = table.inspect.files()["file_path"].to_pylist()
    objects = [f"s3://archive/{key}" for key in driver.sink.fixture.s3.objects if "/_s3sink/" not in key]
    assert sorted(paths) == sorted(objects)
    assert len(paths) > 10


def test_a_driver_that_is_fenced_in_a_commit_adds_nothing_twice(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.write(20)
    next_driver = RegisteringDriver(driver.sink)
    commit, commits = IcebergCatalog.commit, list[int]()

    def fenced_before(self: IcebergCatalog, *given: Any) -> None:
        commits.append(len(commits))
        if commits == [0]:  # the next driver claims the ledger, publishes and registers in the meantime
            next_driver.write(40)
            next_driver.registrar().poll()
        commit(self, *given)

    monkeypatch.setattr(IcebergCatalog, "commit", fenced_before)
    driver.registrar().poll()
    assert next_driver.progress.only.commits == 1
    assert len(commits) == 2  # the first driver finds everything in the table
    assert driver.rows() == 4
    assert driver.progress.only.lag_objects == 0


def test_the_end_of_a_run_registers_what_was_published_last(driver: RegisteringDriver) -> None:
    driver.write(10)
    with driver.registrar(tick_s=0.01) as registrar:
        wait_until(lambda: driver.progress.sums is not None and driver.progress.sums.commits == 1)
        driver.write(20)
        registrar.finish()
    assert driver.rows() == 2


@pytest.mark.parametrize(("error", "kind"), [(TransientError, TransientError), (TableReplaced, TableNotRegistered)])
def test_the_end_of_a_run_raises_the_error_of_a_table(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch, error: type[SinkError], kind: type[SinkError]
) -> None:
    def fails(*_: object) -> None:
        raise error("no table today")

    driver.write(10)
    monkeypatch.setattr(IcebergCatalog, "load", fails)
    with driver.registrar() as registrar:
        registrar.finish(fails=False)
        with pytest.raises(kind, match=rf"table lake\.log: {error.__name__}: no table today") as caught:
            registrar.finish()
    assert caught.type is kind


def test_a_stop_ends_a_registration_that_waits(driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = threading.Event()

    def lost(*_: object) -> None:
        attempts.set()
        raise CommitUnknown("the reply was lost")

    monkeypatch.setattr(IcebergCatalog, "commit", lost)
    monkeypatch.setattr(module, "END_S", 60)
    driver.write(10)
    with driver.registrar(tick_s=0.01) as registrar:
        assert attempts.wait(30)
    assert not registrar._thread.is_alive()


def wait_until(holds: Any) -> None:
    for _ in range(3_000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not hold within 30 s")


@pytest.mark.parametrize("kind", [SystemExit, RecursionError, KeyboardInterrupt])
def test_nothing_that_a_catalog_raises_ends_the_thread(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def fails(*_: object) -> None:
        raise kind

    driver.write(10)
    with driver.registrar(tick_s=0.01) as registrar:
        with monkeypatch.context() as patch:
            patch.setattr(IcebergCatalog, "load", fails)
            wait_until(lambda: driver.progress.sums is not None and driver.progress.sums.failing == 1)
        registrar.finish()
    assert driver.rows() == 1


def test_a_table_that_cannot_be_loaded_does_not_keep_the_next_one_from_its_turn(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, load = sink_tables.read_tables, IcebergCatalog.load

    def more(*given: Any) -> Any:
        found = read(*given)
        return replace(found, objects={"aaa": found.objects["log"], **found.objects})

    def one(catalog: IcebergCatalog, name: str) -> Any:
        if name == "lake.aaa":
            raise TransientError("the metadata of lake.aaa is missing")
        return load(catalog, name)

    driver.write(20)
    with monkeypatch.context() as patch:
        patch.setattr(module, "read_tables", more)
        patch.setattr(IcebergCatalog, "load", one)
        registrar = driver.registrar()
        for _ in range(2):
            driver.now += 5 * MINUTE
            registrar.poll()
    assert driver.rows() == 2


def test_topics_with_the_same_table_stop_and_the_others_are_registered(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = sink_tables.read_tables

    def more(*given: Any) -> Any:
        found = read(*given)
        return replace(found, objects={"a.b": found.objects["log"], "a_b": found.objects["log"], **found.objects})

    monkeypatch.setattr(module, "read_tables", more)
    driver.write(20)
    driver.registrar().poll()
    found = {each.topic: each for each in driver.progress.reports}
    assert (found["log"].reason, found["log"].lag_objects, driver.rows()) == (None, 0, 2)
    for report in (found["a.b"], found["a_b"]):
        assert (report.table, report.reason, report.lag_objects) == ("lake.a_b", "TableNotRegistered", 2)
        assert "the topics a.b and a_b have the same table lake.a_b" in (report.message or "")
    assert driver.catalog.load("lake.a_b") is None


def test_an_error_beside_the_registrations_is_reported_until_the_next_one(
    driver: RegisteringDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("why")

    driver.write(10)
    registrar = driver.registrar()
    registrar.poll()
    with monkeypatch.context() as patch:
        patch.setattr(registrar, "_observe", fails)
        registrar._poll_safely()
    assert (driver.progress.only.table, driver.progress.only.reason) == ("lake.{topic}", "InternalError")
    driver.now += 5 * MINUTE
    registrar._poll_safely()
    assert (driver.progress.only.table, driver.progress.only.reason) == ("lake.log", None)
