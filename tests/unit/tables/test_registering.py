"""The registration of tables in a driver."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.api.parser import load_sink
from sink_job.api.report import TableReport, TableSums
from sink_job.api.spec import Sink
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.progress import Progress
from sink_job.s3 import S3Settings
from sink_job.tables import registering as module
from sink_job.tables.catalog.access import CatalogSecrets
from sink_job.tables.field_ids.waiting_topics import WaitingTopics
from sink_job.tables.registrar import Registrar
from tests.support.memory_s3 import MemoryS3, as_client
from tests.support.sink_fixture import manifest
from tests.support.table_sink import FORMAT

HIVE = [{"catalog": {"type": "HivePartitions", "uri": "thrift://hive:9083"}, "name": "lake.{topic}"}]
TABLES = [{"catalog": {"type": "Rest", "uri": "https://catalog.example.com"}, "name": "lake.{topic}"}]


def sink(*tables: Any) -> Sink:
    return load_sink(
        manifest("archive", "http://127.0.0.1:9", flush_size=10, spec={"format": FORMAT, "tables": tables})
    )


def test_a_sink_with_tables_needs_pyiceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    module.check_installed(sink(*TABLES))
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    module.check_installed(sink())
    with pytest.raises(ConfigurationError, match=r"s3sink\[job,tables\]"):
        module.check_installed(sink(*TABLES))


@pytest.mark.parametrize("tables", [(), TABLES])
def test_a_sink_registers_if_it_has_tables(tables: Any) -> None:
    found = sink(*tables)
    settings: Any = S3Settings.of(found.spec, {})
    s3: Any = None
    progress = Progress(found, lambda: 0)
    registrar = module.registering(found, settings, s3, progress, lambda: 0, str)
    assert isinstance(registrar, Registrar) is bool(tables)


def test_topics_that_wait_are_in_the_report_of_the_driver() -> None:
    found = sink(*TABLES)
    settings: Any = S3Settings.of(found.spec, {})
    s3: Any = None
    progress, waiting = Progress(found, lambda: 0), module.NoTopics()
    report = TableReport(table="lake.new", topic="new", reason="TopicWaitsForTable", message="it waits")
    waiting.reports = lambda: [report]  # type: ignore[method-assign]
    registrar = module.registering(found, settings, s3, progress, lambda: 0, str, held=waiting)
    assert isinstance(registrar, Registrar)
    registrar._report([])
    assert progress.report().tables == [report]
    assert progress.report().table_sums == TableSums(tables=1, failing=1)


@pytest.mark.parametrize(
    ("tables", "format_", "goal", "holds"),
    [
        (TABLES, FORMAT, StopCondition(), True),
        (TABLES, FORMAT, StopCondition(until_caught_up=True, publish_open=True), True),
        (TABLES, FORMAT, StopCondition(publish_open=True), False),
        (HIVE, FORMAT, StopCondition(), False),
        (HIVE, {"converter": "Json"}, StopCondition(), False),
        ((), FORMAT, StopCondition(), False),
    ],
)
def test_only_what_will_have_field_ids_waits_for_those_of_tables(
    tables: Any, format_: Any, goal: StopCondition, holds: bool
) -> None:
    spec = {"format": format_, "tables": tables}
    found = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=10, spec=spec))
    settings: Any = S3Settings.of(found.spec, {})
    s3: Any = as_client(MemoryS3())
    with module.holding_topics(found, settings, s3, str, CatalogSecrets(), goal) as topics:
        assert isinstance(topics, WaitingTopics) is holds
        assert holds or (not topics.held(["log"]) and topics.reports() == [])
