"""Storage class, ACL and tags: of objects, as the server then has them, and of nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from devtools.faults.s3_proxy import FaultProxy
from devtools.faults.s3_requests import kind
from devtools.s3 import Moto, S3Server, VersityGW, s3_server
from sink_job.api.aws_types import TagErrors
from sink_job.cli.store_checks import Outcome, check_store
from sink_job.coordinator.context import StopCondition
from sink_job.s3 import S3Client, S3Settings
from tests.support.forked import killed_at
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

CAUGHT_UP = StopCondition(until_caught_up=True)
ALL = (("StorageClass", "STANDARD_IA"), ("ACL", "bucket-owner-full-control"), ("Tagging", "cost+center=a%2Fb&team="))


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    with s3_server(Moto) as server:
        server.client().create_bucket(Bucket="archive")
        yield server


@pytest.fixture
def with_attributes(settings: S3Settings) -> Iterator[Callable[..., S3Client]]:
    clients = []

    def connected(server: S3Server, *attributes: tuple[str, str]) -> S3Client:
        clients.append(S3Client(dataclasses.replace(settings, endpoint=server.endpoint, attributes=attributes)))
        return clients[-1]

    yield connected
    for client in clients:
        client.close()


def write(s3: S3Client, key: str) -> None:
    upload = s3.create_upload(key)
    s3.complete(key, upload, [s3.upload_part(key, upload, 1, b"content")])


def test_an_object_has_its_class_acl_and_tags_and_a_file_of_the_ledger_has_none(
    moto: S3Server, with_attributes: Callable[..., S3Client]
) -> None:
    s3, server = with_attributes(moto, *ALL), moto.client()
    write(s3, "topics/object")
    s3.put("topics/_s3sink/a/ledger", b"{}")
    assert server.head_object(Bucket="archive", Key="topics/object")["StorageClass"] == "STANDARD_IA"
    tags = server.get_object_tagging(Bucket="archive", Key="topics/object")["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"cost center": "a/b", "team": ""}
    assert len(server.get_object_acl(Bucket="archive", Key="topics/object")["Grants"]) >= 1
    assert "StorageClass" not in server.head_object(Bucket="archive", Key="topics/_s3sink/a/ledger")
    assert server.get_object_tagging(Bucket="archive", Key="topics/_s3sink/a/ledger")["TagSet"] == []
    assert s3.ignored_attributes("topics/object") == []


def test_a_temporary_object_has_no_attributes(moto: S3Server, with_attributes: Callable[..., S3Client]) -> None:
    s3, server, key = with_attributes(moto, *ALL), moto.client(), "topics/_s3sink/a/dead-letters/temporary"
    upload = s3.create_upload(key, temporary=True)
    s3.complete(key, upload, [s3.upload_part(key, upload, 1, b"content")])
    assert "StorageClass" not in server.head_object(Bucket="archive", Key=key)
    assert server.get_object_tagging(Bucket="archive", Key=key)["TagSet"] == []


def test_versitygw_keeps_tags(gateway: VersityGW, with_attributes: Callable[..., S3Client], key: str) -> None:
    s3 = with_attributes(gateway, ("Tagging", "team=orders"))
    write(s3, key)
    assert s3.ignored_attributes(key) == []


@pytest.mark.parametrize("server", ["gateway", "moto"])
def test_a_sink_gives_each_object_the_tags_with_its_offsets(
    server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """And no other object; the driver dies after the first completion, and the next one puts the tags."""
    store: S3Server = request.getfixturevalue(server)
    plain = SinkFixture.new(store.endpoint, tmp_path)
    settings = dataclasses.replace(plain.settings, offset_tags=True, attributes=(("Tagging", "team=orders"),))
    sink, log = dataclasses.replace(plain, settings=settings), SyntheticLog(records=25)
    with FaultProxy(store.endpoint) as proxy:
        assert killed_at(
            partial(sink.through(proxy).run, log, CAUGHT_UP, flush_size=10),
            proxy,
            kind("PutObjectTagging"),
            "before",
            1,
        )
    sink.run(log, CAUGHT_UP, flush_size=10)
    client = store.client()
    keys = [each["Key"] for each in client.list_objects_v2(Bucket=sink.bucket)["Contents"]]
    tags = {key: client.get_object_tagging(Bucket=sink.bucket, Key=key)["TagSet"] for key in keys}
    found = {key: {tag["Key"]: tag["Value"] for tag in each} for key, each in tags.items() if each}
    assert sorted(found) == sorted(key for key in keys if "/_s3sink/" not in key)
    expected = [("0", "9", "10"), ("10", "19", "10")]
    assert sorted((each["startOffset"], each["endOffset"], each["recordCount"]) for each in found.values()) == expected
    assert {each["team"] for each in found.values()} == {"orders"}


def test_check_store_tries_tags_with_offsets(gateway: VersityGW, with_attributes: Callable[..., S3Client]) -> None:
    s3 = with_attributes(gateway, ("Tagging", "team=orders"))
    checks = check_store(s3, "topics/_s3sink/tags/", s3.server_now_ms, offset_tags=TagErrors.FAIL)
    (check,) = (each for each in checks if each.name == "offset tags")
    assert (check.outcome, check.message) == (Outcome.OK, "")
    assert list(s3.list("topics/_s3sink/tags/")) == []


def test_check_store_reports_a_class_that_the_store_ignores(
    gateway: VersityGW, with_attributes: Callable[..., S3Client]
) -> None:
    s3 = with_attributes(gateway, ("StorageClass", "STANDARD_IA"), ("Tagging", "team=orders"))
    checks = check_store(s3, "topics/_s3sink/attributes/", s3.server_now_ms, has_attributes=True)
    (check,) = (each for each in checks if each.name == "object attributes")
    assert (check.outcome, check.message.partition(": ")[2]) == (
        Outcome.WARNING,
        "the store ignores spec.s3.storageClass: remove it, or use another store",
    )
    assert list(s3.list("topics/_s3sink/attributes/")) == []
