"""The lock of a table: a bounded wait, and no lock that stays. tests/data/test_hive_catalog.py has a metastore."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore.ttypes import LockState, MetaException
from thrift.transport.TTransport import TTransportException

from sink_job.api.errors import ConfigurationError
from sink_job.tables.catalog.access import CommitNotSent
from sink_job.tables.catalog.hive_lock import TableLock
from tests.support.memory_metastore import MemoryMetastore


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def lock_of(metastore: MemoryMetastore, clock: Clock) -> TableLock:
    found: Any = metastore
    return TableLock(found, "lake", "log", 10.0, clock, clock.pause)


def test_a_lock_is_held_until_the_end_and_given_back() -> None:
    metastore = MemoryMetastore()
    with lock_of(metastore, Clock()).held(metastore) as check:
        check()
        assert len(metastore.locks) == 1
    assert metastore.locks == {}


def test_a_lock_of_another_client_is_waited_for() -> None:
    clock, metastore = Clock(), MemoryMetastore(states=[LockState.WAITING] * 5)
    with lock_of(metastore, clock).held(metastore):
        assert 0 < clock.now < 10
    assert metastore.locks == {}


def test_the_wait_for_a_lock_is_bounded_and_the_error_names_the_holder() -> None:
    clock, metastore = Clock(), MemoryMetastore(states=[LockState.WAITING] * 1000)
    metastore.locks[7] = "spark"
    with (
        pytest.raises(CommitNotSent, match=r"lake\.log is locked by other@host \(spark, lock 7\), for more than 10 s"),
        lock_of(metastore, clock).held(metastore),
    ):
        pass
    assert clock.now < 12
    assert metastore.locks == {7: "spark"}


def test_a_lock_that_was_held_for_too_long_protects_no_commit() -> None:
    clock, metastore = Clock(), MemoryMetastore()
    with lock_of(metastore, clock).held(metastore) as check:
        clock.now = 31
        with pytest.raises(CommitNotSent, match="was held for more than 30 s"):
            check()


@pytest.mark.parametrize("state", [LockState.ABORT, LockState.NOT_ACQUIRED])
def test_a_lock_that_is_not_given_is_no_commit(state: int) -> None:
    metastore = MemoryMetastore(states=[state])
    with pytest.raises(CommitNotSent, match="has not given the lock"), lock_of(metastore, Clock()).held(metastore):
        pass
    assert metastore.locks == {}


@pytest.mark.parametrize("error", [MetaException("no table HIVE_LOCKS"), TTransportException(message="closed")])
def test_a_metastore_without_locks_is_an_error_that_says_what_to_do(error: Exception) -> None:
    def fail(method: str) -> None:
        if method == "lock":
            raise error

    metastore = MemoryMetastore(before=fail)
    with (
        pytest.raises(CommitNotSent, match=r"engine\.hive\.lock-enabled=false"),
        lock_of(metastore, Clock()).held(metastore),
    ):
        pass


@pytest.mark.parametrize("error", [TTransportException(message="closed"), ConfigurationError("no certificates")])
def test_a_lock_that_cannot_be_given_back_does_not_hide_the_outcome_of_the_commit(error: Exception) -> None:
    def fail(method: str) -> None:
        if method == "show_locks":
            raise error

    metastore = MemoryMetastore(before=fail)
    with pytest.raises(ZeroDivisionError), lock_of(metastore, Clock()).held(metastore):
        raise ZeroDivisionError
    with lock_of(metastore, Clock()).held(metastore):
        pass
