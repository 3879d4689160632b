"""The servers and tools behave as the data tests assume."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError

from devtools import bucket_listing
from devtools.certificates import self_signed
from devtools.faults.s3_proxy import Drop, FaultProxy, Hold, Kill, S3ErrorReply
from devtools.faults.s3_requests import kind, mutating
from devtools.jars import broker_class_path
from devtools.kafka import KafkaBroker, class_archive
from devtools.processes import Process, accepts_connections, free_ports, in_session, killed_at_end, wait_until
from devtools.s3 import Moto, S3Server, s3_server
from devtools.topics import Record, Topics
from tests.support.shared_broker import shared_broker

pytestmark = pytest.mark.data

MIB = 1 << 20


def test_an_aborted_transaction_is_not_read_but_uses_offsets(topics: Topics, topic: str) -> None:
    topics.create(topic, partitions=2)
    topics.produce(topic, [Record(value=b"plain", key=b"k", timestamp=1_000, headers=[("h", b"1")])])
    topics.transaction(topic, [Record(value=b"gone")], commit=False)
    topics.transaction(topic, [Record(value=b"kept"), Record(value=None, partition=1)])

    read = [(message.partition(), message.offset(), message.value()) for message in topics.read(topic)]
    assert read == [(0, 0, b"plain"), (0, 3, b"kept"), (1, 0, None)]
    assert topics.ends(topic) == {0: 5, 1: 2}
    assert topics.read(topic)[0].timestamp()[1] == 1_000


def test_records_are_deleted_and_partitions_added_on_request(topics: Topics, topic: str) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"a", b"b", b"c"])
    topics.delete_records(topic, 0, 2)
    topics.add_partitions(topic, 3)

    assert topics.starts(topic) == {0: 2, 1: 0, 2: 0}
    topics.commit(f"{topic}-group", topic, {0: 3})
    assert topics.committed(f"{topic}-group", topic) == {0: 3}


def test_the_archive_of_the_brokers_classes_belongs_to_its_java_and_jars() -> None:
    jars = broker_class_path()
    archive = class_archive(jars)
    if not archive.exists():
        pytest.skip("`make prepare-test` builds it")
    options = [
        f"-XX:SharedArchiveFile={archive}",
        "-Xshare:on",
        "-XX:+UseSerialGC",
        "-cp",
        os.pathsep.join(map(str, jars)),
    ]
    done = subprocess.run(["java", *options, "kafka.Kafka", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_shared_broker_runs_until_no_process_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.shared_broker.kafka_broker", _listener)
    first = shared_broker(tmp_path)
    broker = first.__enter__()
    with shared_broker(tmp_path) as same:
        assert same.bootstrap == broker.bootstrap
        ends = threading.Thread(target=first.__exit__, args=(None, None, None))
        ends.start()
        wait_until(lambda: not (tmp_path / "kafka.port").exists(), "the end of the first user", seconds=30)
        assert accepts_connections(same.port)
    ends.join(30)
    assert not accepts_connections(broker.port)


def test_a_process_that_shares_a_broker_starts_another_one_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.shared_broker.kafka_broker", _listener)
    (tmp_path / "kafka.port").write_text(str(free_ports(1)[0]))
    with shared_broker(tmp_path) as broker:
        assert accepts_connections(broker.port)


@contextmanager
def _listener(**_: object) -> Iterator[KafkaBroker]:
    """In place of a broker: a port that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        broker = KafkaBroker(Path())
        broker.port = listener.getsockname()[1]
        yield broker


def test_a_broker_keeps_its_records_and_its_address_through_a_kill(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path, users={"alice": "secret"})
    try:
        broker.start()
        topics = Topics(broker.bootstrap)
        topics.create("t")
        topics.produce_values("t", [b"1", b"2"])
        broker.kill()
        broker.start()
        assert [message.value() for message in topics.read("t")] == [b"1", b"2"]

        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        alice = Topics(broker.sasl_bootstrap, properties={**login, "sasl.username": "alice", "sasl.password": "secret"})
        assert alice.ends("t") == {0: 2}
    finally:
        broker.kill()


@pytest.mark.parametrize("kind_of_server", [Moto], ids=["moto"])
def test_the_fallback_server_holds_objects(kind_of_server: type[S3Server]) -> None:
    with s3_server(kind_of_server) as server:
        client = server.client()
        client.create_bucket(Bucket="bucket")
        client.put_object(Bucket="bucket", Key="k", Body=b"x")
        assert bucket_listing.objects(client, "bucket") == {"k": 1}


def test_a_server_keeps_its_objects_through_a_restart_and_speaks_tls(tmp_path: Path) -> None:
    with s3_server(certificate=self_signed(tmp_path)) as server:
        client = server.client()
        client.create_bucket(Bucket="bucket")
        client.put_object(Bucket="bucket", Key="k", Body=b"one\ntwo\n")
        server.restart()
        assert server.endpoint.startswith("https:")
        assert bucket_listing.lines(client, "bucket", "k") == [b"one", b"two"]


def test_the_proxy_counts_requests_and_passes_large_payloads_unchanged(
    s3: S3Server, s3_proxy: FaultProxy, bucket: str
) -> None:
    client = s3.client(s3_proxy.endpoint)
    large = bytes(range(256)) * (25 * MIB // 256)
    upload = client.create_multipart_upload(Bucket=bucket, Key="a/b c+d", ChecksumAlgorithm="CRC64NVME")["UploadId"]
    parts = []
    for number in (1, 2):
        done = client.upload_part(
            Bucket=bucket, Key="a/b c+d", UploadId=upload, PartNumber=number, Body=large, ChecksumAlgorithm="CRC64NVME"
        )
        parts.append({"PartNumber": number, "ETag": done["ETag"], "ChecksumCRC64NVME": done["ChecksumCRC64NVME"]})
    client.complete_multipart_upload(
        Bucket=bucket,
        Key="a/b c+d",
        UploadId=upload,
        MultipartUpload={"Parts": parts},  # type: ignore[typeddict-item]
    )

    assert bucket_listing.body(client, bucket, "a/b c+d") == large + large
    assert s3_proxy.kinds() == {
        "CreateMultipartUpload": 1,
        "UploadPart": 2,
        "CompleteMultipartUpload": 1,
        "GetObject": 1,
    }
    first = next(request for request in s3_proxy.requests if request.kind == "UploadPart")
    assert (first.bucket, first.key, first.part, first.upload_id, first.size) == (
        bucket,
        "a/b c+d",
        1,
        upload,
        len(large),
    )
    assert [status for _, status in s3_proxy.answered] == [200] * 5


def test_a_lost_request_never_reached_the_server_and_a_lost_reply_did(
    s3: S3Server, s3_proxy: FaultProxy, bucket: str
) -> None:
    client = s3.client(s3_proxy.endpoint)
    s3_proxy.when(kind("PutObject", key="lost-request"), Drop())
    s3_proxy.when(kind("PutObject", key="lost-reply"), Drop(), point="after")
    for key in ("lost-request", "lost-reply"):
        with pytest.raises(ConnectionClosedError):
            client.put_object(Bucket=bucket, Key=key, Body=b"x")

    assert list(bucket_listing.objects(client, bucket)) == ["lost-reply"]


def test_the_second_and_third_request_are_answered_slow_down(s3: S3Server, s3_proxy: FaultProxy, bucket: str) -> None:
    client = s3.client(s3_proxy.endpoint)
    s3_proxy.when(mutating, S3ErrorReply(503, "SlowDown"), nth=2, times=2)
    codes = []
    for number in range(4):
        try:
            client.put_object(Bucket=bucket, Key=f"{number}", Body=b"x" * MIB)
            codes.append("done")
        except ClientError as error:
            codes.append(error.response["Error"]["Code"])

    assert codes == ["done", "SlowDown", "SlowDown", "done"]


def test_a_held_request_continues_when_it_is_released(s3: S3Server, s3_proxy: FaultProxy, bucket: str) -> None:
    hold = Hold()
    client = s3.client(s3_proxy.endpoint)
    with s3_proxy.when(kind("PutObject"), hold) as rule:
        putting = threading.Thread(target=client.put_object, kwargs={"Bucket": bucket, "Key": "k", "Body": b"x"})
        putting.start()
        assert rule.wait().key == "k"
        assert bucket_listing.objects(client, bucket) == {}
        hold.release.set()
        putting.join()
    assert bucket_listing.objects(client, bucket) == {"k": 1}


CLIENT = """
import subprocess, sys
from devtools.s3 import s3_client
subprocess.Popen(["sleep", "600"], process_group=0)
client = s3_client(sys.argv[1])
for number in range(10):
    client.put_object(Bucket=sys.argv[2], Key=f"{number}", Body=b"x")
"""


@pytest.mark.parametrize(("point", "left"), [("before", 3), ("after", 4)])
def test_a_process_and_its_children_are_killed_at_a_request(
    s3: S3Server, s3_proxy: FaultProxy, bucket: str, tmp_path: Path, point: str, left: int
) -> None:
    command = [sys.executable, "-c", CLIENT, s3_proxy.endpoint, bucket]
    with killed_at_end(Process(command, log=tmp_path / "log", cwd=Path.cwd())) as process:
        rule = s3_proxy.when(mutating, Kill(process), nth=4, point="before" if point == "before" else "after")
        rule.wait()
        assert process.wait(10) == -9
        assert in_session(process.pid) == []
    assert list(bucket_listing.objects(s3.client(), bucket)) == [f"{number}" for number in range(left)]

    with pytest.raises((ConnectionClosedError, EndpointConnectionError)):
        bucket_listing.objects(s3.client(s3_proxy.endpoint), bucket)
    s3_proxy.resume()
    assert len(bucket_listing.objects(s3.client(s3_proxy.endpoint), bucket)) == left
