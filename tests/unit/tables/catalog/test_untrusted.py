"""What others write into tables and answers of catalogs decides nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import MetadataLogEntry

from sink_job.api.errors import ConfigurationError, TableIncompatible, TableNotRegistered
from sink_job.tables import file_io
from sink_job.tables.catalog.untrusted import old_metadata_files, server_properties
from sink_job.tables.catalogs import CommitUnknown
from sink_job.tables.plan import Request
from tests.support.table_sink import TableSink

OWN = {"uri": "https://catalog.example.com", "auth": "own", "py-io-impl": "own"}


def test_a_server_decides_where_its_resources_are_and_nothing_else() -> None:
    answered = {
        **OWN,
        "uri": "https://catalog.example.com/",
        "prefix": "lake",
        "auth": {"type": "custom", "custom": {}},
        "py-io-impl": "os.system",
        "rest.sigv4-enabled": "true",
        "ssl": {"cabundle": False},
        "header.Authorization": "x",
        "token": "x",
    }
    assert server_properties(OWN, answered) == {**OWN, "prefix": "lake"}


def test_a_server_that_names_another_address_gets_no_login() -> None:
    with pytest.raises(ConfigurationError, match="names another address in its configuration, https://evil"):
        server_properties(OWN, {**OWN, "uri": "https://evil.example.com"})


def metadata(table_sink: TableSink, files: list[str], **properties: str) -> TableMetadata:
    log = [MetadataLogEntry.model_validate({"metadata-file": each, "timestamp-ms": 1}) for each in files]
    found = table_sink.table().metadata
    return found.model_copy(update={"metadata_log": log, "properties": {**found.properties, **properties}})


@pytest.fixture
def registered(table_sink: TableSink) -> TableSink:
    table_sink.write(10)
    table_sink.register()
    return table_sink


def test_only_files_in_the_tables_own_folder_of_metadata_are_deleted(registered: TableSink) -> None:
    own = "s3://lake/tables/lake/log/metadata/00001-a.metadata.json"
    others = [
        "s3://archive/topics/log/partition=0/log+0+0000000000.parquet",
        "s3://lake/tables/lake/log/metadata/../../x.metadata.json",
        "s3://lake/tables/lake/log/metadata/snap-1.avro",
    ]
    location = registered.table().location()
    before = metadata(registered, [own, *others])
    assert old_metadata_files(location, before, metadata(registered, [])) == [own]
    assert old_metadata_files(location, before, metadata(registered, [own])) == []
    kept = metadata(registered, [], **{"write.metadata.delete-after-commit.enabled": "false"})
    assert old_metadata_files(location, before, kept) == ()


def test_a_class_that_a_table_names_is_not_loaded(registered: TableSink, capfd: pytest.CaptureFixture[str]) -> None:
    named = {"write.py-location-provider.impl": "builtins.print"}
    edit(registered, properties={**registered.table().properties, **named})
    registered.write(20)
    with pytest.raises(TableIncompatible, match=r"names a class \(builtins\.print\)"):
        registered.register(Request())
    assert "s3://lake" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "location",
    [
        "file:///data/log",
        "S3://lake/tables/log",
        "s3://archive//topics/x",
        "s3://lake/../x",
        "s3://lake/./x",
        "s3://lake/x?y",
        "s3://lake/x#y",
        "s3://",
    ],
)
def test_a_location_that_stores_and_readers_read_differently_is_rejected(registered: TableSink, location: str) -> None:
    edit(registered, location=location)
    registered.write(20)
    with pytest.raises((TableIncompatible, ConfigurationError), match=r"location|not in a bucket"):
        registered.register(Request())


def test_a_folder_of_metadata_among_the_objects_is_rejected(registered: TableSink) -> None:
    with registered.table().transaction() as change:
        change.set_properties({"write.metadata.path": "s3://archive/topics/_s3sink/default.log/ledger"})
    registered.write(20)
    with pytest.raises(TableIncompatible, match="one lies in the other"):
        registered.register(Request())


def edit(sink: TableSink, **changes: Any) -> None:
    """Changes the present metadata file of the table."""
    key = sink.table().metadata_location.removeprefix("s3://lake/")
    document = json.loads(sink.lake.get(key)) | changes
    sink.lake.delete([key])
    sink.lake.put(key, json.dumps(document).encode())


def test_an_answer_without_the_commit_is_an_unknown_outcome(
    registered: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, iceberg = registered.table(), registered.iceberg
    answer = type("Answer", (), {"metadata": table.metadata})
    monkeypatch.setattr(iceberg, "commit_table", lambda *_: answer)
    registered.write(20)
    seen: list[Exception] = []
    commit = registered.catalog.inner.commit

    def observed(*given: Any) -> None:
        try:
            commit(*given)
        except CommitUnknown as error:
            seen.append(error)
            monkeypatch.undo()
            raise

    monkeypatch.setattr(registered.catalog.inner, "commit", observed)
    registered.register(Request())
    assert len(seen) == 1
    assert len(registered.files()) == 2


def test_metadata_that_would_not_fit_in_memory_is_not_read(
    registered: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_io, "MAX_METADATA", 100)
    with pytest.raises(TableNotRegistered, match="more than 100: expire snapshots of the table"):
        registered.register(Request())
