"""The tables of a manifest."""

from __future__ import annotations

import pytest

from sink_job.api.errors import InvalidSpec, TableNotRegistered
from sink_job.tables.catalog.access import CatalogSecrets
from sink_job.tables.sink_tables import open_tables
from tests.support.registered_sink import RegisteredSink


def test_each_name_has_a_table_of_each_topic(registered_sink: RegisteredSink) -> None:
    registered_sink.describe("one.{topic}", "other.{topic}")
    registered_sink.write(25)
    opened = open_tables(registered_sink.fixture.sink, CatalogSecrets())
    assert [(name, topic) for _, name, topic in opened.tables(())] == [("one.log", "log"), ("other.log", "log")]
    assert [name for _, name, _ in opened.tables(["other.log"])] == ["other.log"]
    with pytest.raises(InvalidSpec, match=r"Its tables: one\.log, other\.log"):
        list(opened.tables(["log"]))


def test_the_prefixes_are_those_of_all_keys(registered_sink: RegisteredSink) -> None:
    registered_sink.write(25)
    opened = open_tables(registered_sink.fixture.sink, CatalogSecrets())
    assert opened.prefixes == ["topics/"]
    assert opened.root.startswith("topics/_s3sink/")


def test_a_target_has_the_options_of_its_entry(registered_sink: RegisteredSink) -> None:
    registered_sink.describe("one.{topic}", "other.log")
    registered_sink.write(25)
    opened = open_tables(registered_sink.fixture.sink, CatalogSecrets())
    target = opened.target("other.log", "log", lambda seconds: None)
    assert (target.name, target.partitioning, target.branch) == ("other.log", "Path", "main")
    assert target.objects is opened.objects["log"]
    assert opened.objects["log"].count_after(0) == 3


def test_two_entries_with_one_table_are_rejected(registered_sink: RegisteredSink) -> None:
    registered_sink.describe("one.{topic}", "one.log")
    registered_sink.write(25)
    opened = open_tables(registered_sink.fixture.sink, CatalogSecrets())
    with pytest.raises(InvalidSpec, match=r"2 entries have the table one\.log"):
        opened.target("one.log", "log", lambda seconds: None)


def test_a_table_may_not_have_the_name_that_another_one_may_continue_in(registered_sink: RegisteredSink) -> None:
    registered_sink.describe("one.{topic}", "one.{topic}_2", "other.{topic}", onReset="NewTable")
    registered_sink.write(25)
    opened = open_tables(registered_sink.fixture.sink, CatalogSecrets())
    for name in ("one.log", "one.log_2"):
        with pytest.raises(TableNotRegistered, match=r"with NewTable one\.log may be continued in one\.log_2"):
            opened.target(name, "log", lambda seconds: None)
    assert opened.target("other.log", "log", lambda seconds: None).successors.on_reset


def test_a_target_may_be_continued_as_its_entry_says(registered_sink: RegisteredSink) -> None:
    registered_sink.describe("one.{topic}", onIncompatible="NewTable")
    registered_sink.write(25)
    target = open_tables(registered_sink.fixture.sink, CatalogSecrets()).target("one.log", "log", lambda seconds: None)
    assert (target.successors.on_reset, target.successors.on_incompatible) == (False, True)
