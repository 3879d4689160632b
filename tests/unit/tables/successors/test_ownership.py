"""A table belongs to those of a topic if it names the one before."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import SetPropertiesUpdate

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.successors.continuation import Predecessor, Successors, continues_property, encoded
from sink_job.tables.successors.ownership import check_next, check_owned
from tests.support.chain_sink import TEXT, ChainSink, typed_log
from tests.support.table_sink import SINK_ID

FIRST = Successors(base="lake.log")


@pytest.fixture
def table(chain_sink: ChainSink) -> Table:
    chain_sink.write_log(typed_log((10, (TEXT,))))
    chain_sink.register()
    return chain_sink.table()


def continuing(sink: ChainSink, table: Table, uuid: str) -> Table:
    """The table with the property of a successor."""
    update = SetPropertiesUpdate(updates={continues_property(SINK_ID): encoded(Predecessor("lake.log", uuid))})
    sink.iceberg.commit_table(table, (), (update,))
    return sink.table()


def test_the_first_table_continues_none(chain_sink: ChainSink, table: Table) -> None:
    check_owned(table, FIRST, SINK_ID)
    with pytest.raises(TableNotRegistered, match=r"the table continues lake\.log"):
        check_owned(continuing(chain_sink, table, "u"), FIRST, SINK_ID)


@pytest.mark.parametrize("uuid", ["u", "v", None])
def test_a_successor_has_the_uuid_of_the_table_before(chain_sink: ChainSink, table: Table, uuid: str | None) -> None:
    successors = Successors(base="lake.log", number=2, predecessor=Predecessor("lake.log", "u"))
    found = table if uuid is None else continuing(chain_sink, table, uuid)
    if uuid == "u":
        check_owned(found, successors, SINK_ID)
        return
    with pytest.raises(TableNotRegistered, match=r"table lake\.log exists, and it does not continue lake\.log"):
        check_owned(found, successors, SINK_ID)


class OneTable:
    """A catalog in which each table exists."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def load(self, name: str) -> Table:
        return self._table


def test_a_table_of_others_is_found_before_a_table_is_left(chain_sink: ChainSink, table: Table) -> None:
    catalog: Any = OneTable(table)
    with pytest.raises(TableNotRegistered, match=r"table lake\.log_2 exists"):
        check_next(catalog, table, FIRST, SINK_ID)
    mine: Any = OneTable(continuing(chain_sink, table, str(table.metadata.table_uuid)))
    check_next(mine, table, FIRST, SINK_ID)
    check_next(mine, None, FIRST, SINK_ID)
    check_next(chain_sink.catalog, table, FIRST, SINK_ID)
