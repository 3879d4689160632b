"""The statement of each dialect, with its comments."""

from __future__ import annotations

import pytest

from sink_job.cli.ddl import DIALECTS
from sink_job.ddl.statements import Dialect, statement_of
from tests.unit.ddl.tables import HOURLY, json_table, table


def test_the_command_has_all_dialects() -> None:
    assert set(DIALECTS) == {*Dialect}


@pytest.mark.parametrize("dialect", Dialect)
def test_each_dialect_has_a_statement_below_its_comments(dialect: Dialect) -> None:
    text, is_whole = statement_of(json_table(notes=("note",)), dialect)
    lines = text.splitlines()
    assert (lines[:2], is_whole) == (["-- flights: s3://lake/topics/flights/", "-- note"], True)
    assert any(not line.startswith("--") for line in lines)


@pytest.mark.parametrize("dialect", Dialect)
def test_what_the_table_cannot_have_is_a_comment(dialect: Dialect) -> None:
    text, is_whole = statement_of(table(gaps=("gap",)), dialect)
    assert "-- NOT EXPRESSED: gap" in text
    assert not is_whole


@pytest.mark.parametrize("dialect", Dialect)
def test_records_without_a_value_outside_of_the_partitions_are_a_gap(dialect: Dialect) -> None:
    text, is_whole = statement_of(json_table(paths=HOURLY, tombstones="gone"), dialect)
    assert text.count("-- NOT EXPRESSED: records without a value are below gone/") == 1
    assert not is_whole


@pytest.mark.parametrize("dialect", [Dialect.ATHENA, Dialect.GLUE, Dialect.TRINO])
def test_a_place_that_is_a_template_of_locations_is_a_gap(dialect: Dialect) -> None:
    text, is_whole = statement_of(json_table(paths=HOURLY, prefix="${topic}/flights/"), dialect)
    assert "-- NOT EXPRESSED: the place s3://lake/${topic}/flights/ has ${" in text
    assert not is_whole
