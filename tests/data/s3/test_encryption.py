"""Encryption by the store: of objects, ledger and staging, as the server then has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devtools.s3 import Moto, S3Server, VersityGW, s3_server
from sink_job.api.errors import UnsupportedStore
from sink_job.cli.store_checks import Outcome, check_store
from sink_job.coordinator.context import StopCondition
from sink_job.s3 import S3Client, S3Settings, Usage, probe_encryption
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

CAUGHT_UP = StopCondition(until_caught_up=True)

KEY = "arn:aws:kms:us-east-1:123456789012:key/archive"
KMS = (("ServerSideEncryption", "aws:kms"), ("SSEKMSKeyId", KEY), ("BucketKeyEnabled", True))
Encrypted = Callable[..., S3Client]


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    with s3_server(Moto) as server:
        server.client().create_bucket(Bucket="archive")
        yield server


@pytest.fixture
def encrypted(settings: S3Settings) -> Iterator[Encrypted]:
    clients = []

    def connected(server: S3Server, *encryption: tuple[str, str | bool]) -> S3Client:
        clients.append(S3Client(dataclasses.replace(settings, endpoint=server.endpoint, encryption=encryption)))
        return clients[-1]

    yield connected
    for client in clients:
        client.close()


@pytest.mark.parametrize("encryption", [KMS, KMS[:1], (("ServerSideEncryption", "aws:kms:dsse"),)])
def test_objects_and_files_of_the_ledger_are_encrypted_as_the_manifest_says(
    moto: S3Server, encrypted: Encrypted, encryption: tuple[tuple[str, str | bool], ...], key: str
) -> None:
    s3, server = encrypted(moto, *encryption), moto.client()
    upload = s3.create_upload(key)
    s3.complete(key, upload, [s3.upload_part(key, upload, 1, b"content")])
    s3.put(f"{key}.ledger", b"{}")
    for each in (key, f"{key}.ledger"):
        found = server.head_object(Bucket="archive", Key=each)
        sent = {name: value for name, value in encryption if name != "BucketKeyEnabled"}  # moto keeps it of a put only
        assert {name: found.get(name) for name in sent} == sent
    assert s3.get(key) == b"content"


@pytest.mark.parametrize("encryption", [KMS, (("ServerSideEncryption", "AES256"),)])
def test_a_start_tries_a_put_and_a_completed_upload_and_leaves_nothing(
    moto: S3Server, encrypted: Encrypted, encryption: tuple[tuple[str, str | bool], ...]
) -> None:
    s3 = encrypted(moto, *encryption)
    probe_encryption(s3, "topics/_s3sink/a/")
    assert list(s3.list("topics/_s3sink/a/")) == []
    assert list(s3.list_uploads("topics/_s3sink/a/")) == []


def test_a_store_that_ignores_the_encryption_is_rejected(gateway: VersityGW, encrypted: Encrypted) -> None:
    s3 = encrypted(gateway, *KMS)
    with pytest.raises(UnsupportedStore, match=r"ignores spec\.s3\.encryption: an object has the encryption None"):
        probe_encryption(s3, "topics/_s3sink/a/")
    assert list(s3.list("topics/_s3sink/a/")) == []
    checks = check_store(s3, "topics/_s3sink/a/", s3.server_now_ms, has_encryption=True)
    (check,) = (each for each in checks if each.name == "encryption")
    assert (check.outcome, check.exit_code) == (Outcome.FAILED, 7)


def test_without_an_encryption_nothing_is_written(gateway: VersityGW, encrypted: Encrypted) -> None:
    s3 = encrypted(gateway)
    probe_encryption(s3, "topics/_s3sink/b/")
    assert s3.meter.snapshot() == Usage()


def test_a_sink_encrypts_objects_ledger_and_staging_and_gives_attributes_to_objects_alone(
    moto: S3Server, tmp_path: Path
) -> None:
    plain = SinkFixture.new(moto.endpoint, tmp_path)
    settings = dataclasses.replace(plain.settings, encryption=KMS[:2], attributes=(("StorageClass", "STANDARD_IA"),))
    sink = dataclasses.replace(plain, settings=settings)
    section = {"type": "Kms", "kmsKey": KEY}
    s3 = {"bucket": sink.bucket, "endpoint": sink.endpoint, "region": "us-east-1", "pathStyle": True}
    spec = {"s3": {**s3, "encryption": section, "storageClass": "StandardIa"}}
    sink.run(SyntheticLog(records=25), CAUGHT_UP, flush_size=10, spec=spec)
    server = moto.client()
    keys = [each["Key"] for each in server.list_objects_v2(Bucket=sink.bucket)["Contents"]]
    heads = {key: server.head_object(Bucket=sink.bucket, Key=key) for key in keys}
    assert {(head.get("ServerSideEncryption"), head.get("SSEKMSKeyId")) for head in heads.values()} == {
        ("aws:kms", KEY)
    }
    objects = {key for key in keys if "/_s3sink/" not in key}
    assert len(objects) == 2
    assert any("/staging/" in key for key in keys)
    assert {key for key, head in heads.items() if head.get("StorageClass") == "STANDARD_IA"} == objects
