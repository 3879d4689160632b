"""Files of metadata in buckets."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import load_file_io

from sink_job.api.errors import ConfigurationError, TableNotRegistered
from sink_job.s3 import S3Settings
from sink_job.tables import file_io
from sink_job.tables.file_io import SinkFileIO, clients_like, file_properties
from tests.support.memory_s3 import MemoryS3


def files() -> tuple[dict[str, MemoryS3], SinkFileIO]:
    """The buckets by name, and PyIceberg's access to them."""
    buckets: dict[str, MemoryS3] = {}

    def client_of(bucket: str) -> Any:
        return buckets.setdefault(bucket, MemoryS3())

    found = load_file_io(file_properties(client_of))
    assert isinstance(found, SinkFileIO)
    return buckets, found


def test_a_file_is_written_when_it_is_closed_and_read_as_a_whole() -> None:
    buckets, io = files()
    with io.new_output("s3://lake/a/b.avro").create() as stream:
        stream.write(b"abc")
        assert not buckets["lake"].objects
    assert list(buckets["lake"].objects) == ["a/b.avro"]
    read = io.new_input("s3a://lake/a/b.avro")
    assert (len(read), read.exists(), read.open().read()) == (3, True, b"abc")
    io.delete("s3://lake/a/b.avro")
    assert not io.new_input("s3://lake/a/b.avro").exists()


def test_a_file_that_exists_is_replaced_on_request_only() -> None:
    _, io = files()
    output = io.new_output("s3://lake/a")
    for overwrite in (False, True):
        with output.create(overwrite=overwrite) as stream:
            stream.write(b"x")
    stream = output.create()
    stream.write(b"y")
    with pytest.raises(FileExistsError):
        stream.close()


def test_a_file_is_not_written_after_an_error() -> None:
    buckets, io = files()
    with pytest.raises(ZeroDivisionError), io.new_output("s3://lake/a").create():
        raise ZeroDivisionError
    assert not buckets["lake"].objects


def test_a_file_that_does_not_exist_is_an_error_with_its_location() -> None:
    _, io = files()
    with pytest.raises(FileNotFoundError, match="s3://lake/none"):
        io.new_input("s3://lake/none").open()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("1.metadata.json", bytes(101)),
        ("of-any-name", bytes(101)),
        ("1.gz.metadata.json", gzip.compress(bytes(101))),
        ("1.gz.metadata.json", gzip.compress(bytes(60)) + gzip.compress(bytes(60))),
    ],
    ids=["metadata", "another name", "compressed", "compressed in parts"],
)
def test_metadata_that_is_too_large_is_rejected(name: str, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_io, "MAX_METADATA", 100)
    buckets, io = files()
    at = io.new_input(f"s3://lake/{name}")
    buckets["lake"].put(name, content)
    with pytest.raises(TableNotRegistered, match=f"s3://lake/{name} has .*more than 100: expire snapshots"):
        at.open()


def test_metadata_that_is_not_too_large_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_io, "MAX_METADATA", 100)
    buckets, io = files()
    at, content = io.new_input("s3://lake/1.gz.metadata.json"), gzip.compress(bytes(100))
    buckets["lake"].put("1.gz.metadata.json", content)
    assert at.open().read() == content


def test_metadata_outside_of_s3_is_rejected() -> None:
    _, io = files()
    with pytest.raises(ConfigurationError, match="file:///tmp/x is not in a bucket"):
        io.new_input("file:///tmp/x")


def test_objects_with_a_customers_key_cannot_be_in_a_table() -> None:
    with pytest.raises(ConfigurationError, match="customerKey"):
        clients_like(S3Settings(bucket="b", customer_keys=(Path("key"),)))
