"""Topics without field ids wait for the ids of their tables; all others are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from sink_job.api.enums import CatalogType
from sink_job.api.errors import AccessDenied, TableIncompatible, TopicWaitsForTable, TransientError
from sink_job.api.parser import load_sink
from sink_job.api.sections.tables_section import CatalogSpec, TableSpec
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.parquet.types import FIELD_ID
from sink_job.s3 import S3Client
from sink_job.tables.catalogs import IcebergCatalog
from sink_job.tables.field_ids.waiting_topics import ATTEMPTS, WaitingTopics
from tests.support.memory_s3 import MemoryS3
from tests.support.running import running_driver
from tests.support.sink_fixture import manifest
from tests.support.table_sink import FORMAT, TableSink, parquet_log

ROOT = "topics/_s3sink/default.log/"
LIMIT_S = 20


class Catalog:
    """A catalog that may fail, and counts requests."""

    def __init__(self, inner: IcebergCatalog) -> None:
        self.inner = inner
        self.error: BaseException | None = None
        self.loads: list[str] = []
        self.answers = threading.Event()
        self.answers.set()

    def load(self, name: str) -> Any:
        self.loads.append(name)
        self.answers.wait(LIMIT_S)
        if self.error is not None:
            raise self.error
        return self.inner.load(name)


class Waiting:
    """A new driver's topics, the ledger, and the catalog."""

    def __init__(self, sink: TableSink) -> None:
        self.s3 = MemoryS3()
        self.iceberg = sink.iceberg
        self.catalog = Catalog(sink.catalog.inner)
        self.specs = [self.spec("lake.{topic}")]

    @staticmethod
    def spec(name: str, kind: CatalogType = CatalogType.SQL) -> TableSpec:
        return TableSpec(catalog=CatalogSpec(type=kind, uri="sqlite:////x", warehouse="s3://lake/x"), name=name)

    @contextmanager
    def topics(self, *, ends: bool = False) -> Iterator[WaitingTopics]:
        catalog: Any = self.catalog
        ids = LedgerFieldIds(cast("S3Client", self.s3), ROOT)
        ids._cache = {}
        with WaitingTopics(
            self.specs,
            ids,
            lambda spec: catalog,
            lambda text: text.replace("secret", "***"),
            ends=ends,
            first_retry_s=0.01,
        ) as found:
            yield found

    def create(self, name: str, *columns: str) -> None:
        fields = [NestedField(n, column, LongType(), required=False) for n, column in enumerate(columns, 1)]
        self.iceberg.create_namespace_if_not_exists(name.split(".")[0])
        self.iceberg.create_table(name, Schema(*fields))

    def ids(self, topic: str, *paths: str) -> dict[str, int]:
        """The ids that a task gives to these paths."""
        ids = LedgerFieldIds(cast("S3Client", self.s3), ROOT)
        ids._cache = {}
        ids.add(topic, paths)
        found = ids.find(topic, paths)
        return {path: found[path] for path in paths}


def _redact(text: str) -> str:
    return text.replace("secret", "***")


def until(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    event = threading.Event()
    for _ in range(LIMIT_S * 100):
        if condition():
            return
        event.wait(0.01)
    raise AssertionError("the condition does not hold")


@pytest.fixture
def waiting(table_sink: TableSink) -> Waiting:
    return Waiting(table_sink)


def test_a_new_topic_is_held_until_it_has_the_ids_of_its_table(waiting: Waiting) -> None:
    waiting.create("lake.log", "b", "a")
    waiting.catalog.answers.clear()
    with waiting.topics() as topics:
        assert topics.held(["log"]) == {"log"}
        assert topics.reports() == []
        waiting.catalog.answers.set()
        until(lambda: not topics.held(["log"]))
    assert waiting.ids("log", "a", "c", "b") == {"a": 2, "b": 1, "c": 3}


def test_a_topic_whose_table_does_not_exist_has_ids_of_its_own(waiting: Waiting) -> None:
    with waiting.topics() as topics:
        topics.held(["log"])
        until(lambda: not topics.held(["log"]))
    assert waiting.ids("log", "a", "b") == {"a": 1, "b": 2}


def test_a_topic_with_ids_is_never_held_and_no_catalog_is_asked(waiting: Waiting) -> None:
    waiting.create("lake.log", "b", "a")
    waiting.ids("log", "a")
    with waiting.topics() as topics:
        assert not topics.held(["log"])
        assert not topics._thread.is_alive()
    assert waiting.catalog.loads == []
    assert waiting.ids("log", "a", "b") == {"a": 1, "b": 2}


def test_a_topic_is_asked_for_once(waiting: Waiting) -> None:
    requests: list[str] = []
    with waiting.topics() as topics:
        topics.held(["log"])
        until(lambda: not topics.held(["log"]))
        waiting.s3.fault = lambda call, key: requests.append(call)
        assert not any(topics.held(["log"]) for _ in range(3))
    assert (waiting.catalog.loads, requests) == (["lake.log"], [])


def test_a_topic_that_appears_later_waits_alone(waiting: Waiting) -> None:
    waiting.create("lake.new", "b", "a")
    with waiting.topics() as topics:
        topics.held(["log"])
        until(lambda: not topics.held(["log"]))
        waiting.catalog.error = TransientError("the catalog is down")
        assert topics.held(["log", "new"]) == {"new"}
        until(lambda: bool(topics.reports()))
        assert topics.held(["log", "new"]) == {"new"}
        assert not topics.held(["log"])
        waiting.catalog.error = None
        until(lambda: not topics.held(["log", "new"]))
    assert waiting.ids("new", "a") == {"a": 2}


def test_a_catalog_that_is_down_is_reported_and_asked_again(waiting: Waiting) -> None:
    waiting.create("lake.log", "b", "a")
    waiting.catalog.error = TransientError("the catalog is down: secret")
    with waiting.topics() as topics:
        for _ in range(5):
            assert topics.held(["log"]) == {"log"}
        until(lambda: bool(topics.reports()))
        (report,) = topics.reports()
        assert (report.table, report.topic, report.reason) == ("lake.log", "log", "TopicWaitsForTable")
        assert report.message is not None
        assert report.message.startswith("topic log is not read, since the field ids of its first object have to be")
        assert "TransientError: the catalog is down: ***" in report.message
        waiting.catalog.error = None
        until(lambda: not topics.held(["log"]))
        assert topics.reports() == []
    assert waiting.ids("log", "a") == {"a": 2}


def test_the_same_error_is_logged_once(waiting: Waiting, caplog: pytest.LogCaptureFixture) -> None:
    waiting.catalog.error = TransientError("the catalog is down")
    with waiting.topics() as topics:
        topics.held(["log"])
        until(lambda: len(waiting.catalog.loads) > 4)
    assert len([each for each in caplog.records if "is not read" in each.message]) == 1


def test_a_topic_with_an_error_of_its_own_does_not_keep_others_waiting(waiting: Waiting) -> None:
    waiting.create("lake.a", "x", "y")
    waiting.create("other.a", "y", "x")
    waiting.specs.append(waiting.spec("other.{topic}"))
    with waiting.topics() as topics:
        topics.held(["a", "b"])
        until(lambda: topics.held(["a", "b"]) == {"a"})
        (report,) = topics.reports()
        assert "the tables lake.a and other.a have different field ids" in str(report.message)


@pytest.mark.parametrize("error", [AccessDenied("denied"), ValueError("unexpected"), KeyboardInterrupt()])
def test_whatever_a_catalog_makes_go_wrong_is_tried_again(waiting: Waiting, error: BaseException) -> None:
    waiting.create("lake.log", "b", "a")
    waiting.catalog.error = error
    with waiting.topics() as topics:
        topics.held(["log"])
        until(lambda: bool(topics.reports()))
        waiting.catalog.error = None
        until(lambda: not topics.held(["log"]))
    assert waiting.ids("log", "a") == {"a": 2}


def test_a_run_with_an_end_of_its_own_ends_with_the_error_after_some_attempts(waiting: Waiting) -> None:
    waiting.catalog.error = TransientError("the catalog is down")
    with waiting.topics(ends=True) as topics, pytest.raises(TopicWaitsForTable, match="the catalog is down"):
        until(lambda: not topics.held(["log"]))
    assert len(waiting.catalog.loads) >= ATTEMPTS


def test_a_run_with_an_end_of_its_own_ends_with_an_error_that_does_not_pass(waiting: Waiting) -> None:
    waiting.create("lake.log", "x", "y")
    waiting.create("other.log", "y", "x")
    waiting.specs.append(waiting.spec("other.{topic}"))
    different = pytest.raises(TableIncompatible, match=r"lake.log and other.log have different field ids")
    with waiting.topics(ends=True) as topics, different:
        until(lambda: not topics.held(["log"]))


def test_tables_of_the_kind_of_hive_give_no_ids(waiting: Waiting) -> None:
    waiting.specs = [waiting.spec("lake.{topic}", CatalogType.HIVE_PARTITIONS)]
    with waiting.topics() as topics:
        topics.held(["log"])
        until(lambda: not topics.held(["log"]))
    assert waiting.catalog.loads == []


def test_types_and_names_in_another_case_do_not_matter(waiting: Waiting) -> None:
    fields = [NestedField(1, "KIND", LongType(), required=False), NestedField(2, "offset", StringType(), required=True)]
    waiting.iceberg.create_namespace("lake")
    waiting.iceberg.create_table("lake.log", Schema(*fields))
    with waiting.topics() as topics:
        topics.held(["log"])
        until(lambda: not topics.held(["log"]))
    assert waiting.ids("log", "kind", "offset") == {"kind": 3, "offset": 2}


def test_a_driver_copies_other_topics_while_a_catalog_is_down(table_sink: TableSink) -> None:
    spec = {
        "format": FORMAT,
        "kafka": {"bootstrapServers": "127.0.0.1:9", "topics": ["log", "new"], "groupId": "group"},
    }
    table_sink.fixture.run(parquet_log(10))
    table_sink.fixture.sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=10, name="log", spec=spec))
    waiting = Waiting(table_sink)
    waiting.s3 = table_sink.s3
    waiting.create("lake.new", "kind", "offset")
    waiting.catalog.error = TransientError("the catalog is down")
    log = replace(parquet_log(40), other_topics={"new": "id"})
    with waiting.topics() as topics:
        driver = table_sink.fixture.driver(log, goal=StopCondition(), held_topics=topics.held)
        with running_driver(driver):
            until(lambda: len(_objects(table_sink, "log")) == 4)
            assert _objects(table_sink, "new") == []
            assert topics.held(["log", "new"]) == {"new"}
            waiting.catalog.error = None
            until(lambda: len(_objects(table_sink, "new")) == 4)
    content = table_sink.s3.objects[_objects(table_sink, "new")[0]].body
    schema = pq.read_schema(pa.BufferReader(content))
    ids = {each.name: int(each.metadata[FIELD_ID]) for each in schema}
    assert ids == {"partition": 3, "offset": 2, "kind": 1}


def _objects(sink: TableSink, topic: str) -> list[str]:
    keys = [*sink.s3.objects]  # a driver adds some meanwhile
    return sorted(key for key in keys if key.startswith(f"topics/{topic}/"))
