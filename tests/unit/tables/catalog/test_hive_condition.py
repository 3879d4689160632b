"""Whether a metastore checks conditions. tests/data/test_hive_catalog.py asks a real one, and one without them."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore.ttypes import MetaException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from sink_job.api.errors import ConfigurationError
from sink_job.tables.catalog import hive_condition
from sink_job.tables.catalog.access import CommitNotSent
from sink_job.tables.catalog.hive_condition import PROBE, require_conditions
from tests.support.memory_metastore import MemoryMetastore


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive_condition, "_checked", set())


def require(metastore: MemoryMetastore) -> None:
    given: Any = metastore
    require_conditions(given, "lake")


def failing(*methods: str, error: Exception) -> MemoryMetastore:
    def fail(method: str) -> None:
        if method in methods:
            raise error

    return MemoryMetastore(before=fail)


def test_a_metastore_with_conditions_is_asked_once() -> None:
    metastore = MemoryMetastore()
    require(metastore)
    calls = len(metastore.calls)
    require(metastore)
    assert len(metastore.calls) == calls
    assert metastore.tables == {}
    other = MemoryMetastore(uri="thrift://other")
    require(other)
    assert other.calls == metastore.calls


def test_a_metastore_without_conditions_is_rejected_each_time_and_keeps_no_view() -> None:
    metastore = MemoryMetastore(conditions=False)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="does not check the condition of a commit"):
            require(metastore)
    assert metastore.tables == {}


def test_a_metastore_that_rejects_each_change_shows_no_condition() -> None:
    metastore = failing("alter_table", error=MetaException("denied"))
    with pytest.raises(CommitNotSent, match=f"rejects changes of the view lake.{PROBE}"):
        require(metastore)
    assert metastore.tables == {}


@pytest.mark.parametrize("method", ["create_table", "alter_table", "get_table_req"])
def test_a_metastore_that_does_not_answer_is_asked_again(method: str) -> None:
    metastore = failing(method, error=TTransportException(message="closed"))
    with pytest.raises(CommitNotSent, match=r"allow s3sink to create, change and drop a view s3sink_probe_"):
        require(metastore)
    metastore.before = lambda method: None
    require(metastore)
    assert metastore.tables == {}


def test_a_view_that_cannot_be_dropped_stays() -> None:
    metastore = failing("drop_table", error=TTransportException(message="closed"))
    require(metastore)
    (name,) = metastore.tables
    assert name.startswith(PROBE)


def test_a_metastore_without_the_request_is_rejected() -> None:
    error = TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'get_table_req'")
    with pytest.raises(ConfigurationError, match="Invalid method name"):
        require(failing("get_table_req", error=error))
