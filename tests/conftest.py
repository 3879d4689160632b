"""Fixtures of all tests: one broker and one S3 server per worker, and unique names for each test.

A test that must stop, kill or configure a server starts its own with `devtools`.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from devtools.faults.s3_proxy import FaultProxy
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.s3 import S3Server, s3_server
from devtools.sink_process import SinkCommand, sink_command
from devtools.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_fixture import SparkFixture

settings.register_profile("ci", deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=20)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """A broker that all tests of this worker share. Keep it running, and use only your own topics."""
    with kafka_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """VersityGW, shared by all tests of this worker. Keep it running, and use only your own buckets."""
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def topics(kafka: KafkaBroker) -> Topics:
    """The shared broker's topics."""
    return Topics(kafka.bootstrap)


@pytest.fixture
def unique_name(request: pytest.FixtureRequest) -> str:
    """A unique name for buckets, topics and sinks, which starts with the name of the test."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return f"{words[:40].rstrip('-')}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(unique_name: str) -> str:
    """A name for a topic; the test creates it with the partitions and settings it needs."""
    return unique_name


@pytest.fixture
def bucket(s3: S3Server, unique_name: str) -> str:
    """An empty bucket of the shared S3 server."""
    s3.client().create_bucket(Bucket=unique_name)
    return unique_name


@pytest.fixture
def s3_proxy(s3: S3Server) -> Iterator[FaultProxy]:
    """A proxy of the shared S3 server that counts requests and injects faults; `endpoint` is its address."""
    with FaultProxy(s3.endpoint) as proxy:
        yield proxy


@pytest.fixture
def sink_of(tmp_path: Path) -> Iterator[SinkFactory]:
    """Returns a factory of `Sink` (the s3sink command); its processes are killed after the test."""
    with ExitStack() as stack:

        def make(document: Mapping[str, Any]) -> SinkCommand:
            folder = tmp_path / f"sink-{document['metadata']['name']}-{uuid.uuid4().hex[:4]}"
            return stack.enter_context(sink_command(folder, document))

        yield make


@pytest.fixture(scope="session")
def spark_working_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of the shared Spark; nothing is written to it."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_working_dir: Path) -> Iterator[SparkSession]:
    """Spark in this process, shared by all tests of this worker. Keep it running. It leaves no files."""
    from sink_job.spark.conf import SparkSettings
    from sink_job.spark.jars import connector_jars
    from sink_job.spark.session import session

    temp = tmp_path_factory.mktemp("spark")
    settings = SparkSettings(app_name="tests", jars=connector_jars(), cores=2, heap=512 << 20, temp_dir=temp)
    with ExitStack() as stack:
        with chdir(spark_working_dir):
            running = stack.enter_context(session(settings))
        yield running
    assert list(temp.iterdir()) == []


@pytest.fixture
def spark_fixture(
    spark: SparkSession, kafka: KafkaBroker, topics: Topics, s3: S3Server, bucket: str, tmp_path: Path
) -> SparkFixture:
    """Runs sinks in this process, on the shared servers and the test's own bucket."""
    from tests.support.spark_fixture import SparkFixture

    return SparkFixture(spark=spark, topics=topics, bootstrap=kafka.bootstrap, s3=s3, bucket=bucket, folder=tmp_path)
