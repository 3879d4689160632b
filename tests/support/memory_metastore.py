"""Thrift's client of a metastore in memory, with the faults that a real one does not show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidOperationException,
    LockResponse,
    LockState,
    MetaException,
    NoSuchObjectException,
)


@dataclass
class MemoryMetastore:
    """`conditions`: whether it checks them. `before` is called with each method, `states` are those of the next
    answers about a lock. `calls`: the methods."""

    uri: str = "thrift://memory"
    conditions: bool = True
    before: Callable[[str], None] = lambda method: None
    states: list[int] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    databases: dict[str, Any] = field(default_factory=dict)
    locks: dict[int, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    @contextmanager
    def client(self) -> Iterator[Any]:
        yield self

    def _called(self, method: str) -> None:
        self.calls.append(method)
        self.before(method)

    def create_table(self, table: Any) -> None:
        self._called("create_table")
        if table.tableName in self.tables:
            raise AlreadyExistsException(table.tableName)
        self.tables[table.tableName] = deepcopy(table)

    def get_table_req(self, request: Any) -> Any:
        self._called("get_table_req")
        if request.tblName not in self.tables:
            raise NoSuchObjectException(request.tblName)
        return SimpleNamespace(table=deepcopy(self.tables[request.tblName]))

    def alter_table_with_environment_context(self, database: str, name: str, table: Any, context: Any) -> None:
        self._called("alter_table")
        if name not in self.tables:
            raise InvalidOperationException(f"{database}.{name} table not found")
        key = context.properties["expected_parameter_key"]
        expected = context.properties["expected_parameter_value"]
        if self.conditions and self.tables[name].parameters.get(key) != expected:
            raise MetaException("The table has been modified.")
        self.tables[name] = deepcopy(table)

    def drop_table(self, database: str, name: str, deletes: bool) -> None:
        self._called("drop_table")
        del self.tables[name]

    def get_database(self, name: str) -> Any:
        self._called("get_database")
        if name not in self.databases:
            raise NoSuchObjectException(name)
        return self.databases[name]

    def create_database(self, database: Any) -> None:
        self._called("create_database")
        if database.name in self.databases:
            raise AlreadyExistsException(database.name)
        self.databases[database.name] = database

    def lock(self, request: Any) -> Any:
        self._called("lock")
        number = len(self.calls)
        self.locks[number] = request.agentInfo
        return self._state(number)

    def check_lock(self, request: Any) -> Any:
        self._called("check_lock")
        return self._state(request.lockid)

    def show_locks(self, request: Any) -> Any:
        self._called("show_locks")
        found = [
            SimpleNamespace(lockid=number, agentInfo=agent, user="other", hostname="host")
            for number, agent in self.locks.items()
        ]
        return SimpleNamespace(locks=found)

    def unlock(self, request: Any) -> None:
        self._called("unlock")
        del self.locks[request.lockid]

    def _state(self, number: int) -> Any:
        return LockResponse(number, self.states.pop(0) if self.states else LockState.ACQUIRED)
