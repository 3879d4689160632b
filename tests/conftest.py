"""Fixtures of all tests: one broker and one S3 server per worker, and unique names for each test.

A test that must stop, kill or configure a server starts its own with `devtools`.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from devtools.argocd import argocd_customization
from devtools.faults.s3_proxy import FaultProxy
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.prometheus import prometheus_programs
from devtools.s3 import S3Server, s3_server
from devtools.sink_process import LAUNCHER, SinkCommand, sink_command
from devtools.topics import Topics
from tests.support.argocd import ArgoCd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark_fixture import SparkFixture

settings.register_profile("ci", deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=20)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]
# What a test starts decides at which level it runs: `make test` builds neither Kubernetes nor helm.
MARKER_OF_FIXTURE = {
    "tests.conftest.kafka": "data",
    "tests.conftest.s3": "data",
    "tests.conftest.spark": "spark",
    "tests.chart.conftest.helm": "cluster",
    "tests.conftest.promtool": "cluster",
    "tests.conftest.argocd": "cluster",
    "tests.cluster.conftest.control_plane": "cluster",
}

_LONGEST_FIRST = ("e2e", "spark", "cluster", "model", "data")


def missing_markers(fixtures: Collection[str], markers: Collection[str]) -> set[str]:
    """The markers that a test with these fixtures (module and name) lacks."""
    return {marker for fixture, marker in MARKER_OF_FIXTURE.items() if fixture in fixtures} - set(markers)


def _fixtures(item: pytest.Item) -> set[str]:
    """The fixtures of a test by module and name: a folder may give a name of its own to a stand-in."""
    found = getattr(item, "_fixtureinfo", None)
    functions = [definitions[-1].func for definitions in found.name2fixturedefs.values()] if found else []
    return {f"{function.__module__}.{function.__name__}" for function in functions}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rejects tests that would start a server at a level that has none, and puts the files that last longest first.

    A file's tests stay with one worker, so a long file at the end would keep one worker busy alone. Raises UsageError
    with the names of unmarked tests.
    """
    unmarked = [
        f"{item.nodeid}: add pytest.mark.{marker}"
        for item in items
        for marker in missing_markers(_fixtures(item), {mark.name for mark in item.iter_markers()})
    ]
    if unmarked:
        raise pytest.UsageError("\n".join(unmarked))
    first: dict[Path, int] = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        rank = next((rank for rank, mark in enumerate(_LONGEST_FIRST) if mark in marks), len(_LONGEST_FIRST))
        first[item.path] = min(rank, first.get(item.path, rank))
    items.sort(key=lambda item: first[item.path])


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
def promtool() -> Path:
    """Prometheus' own tool for rules and metrics; built when it has never been."""
    return prometheus_programs().promtool


@pytest.fixture(scope="session")
def argocd() -> ArgoCd:
    """Argo CD's own code for health checks and actions; built when it has never been."""
    return ArgoCd(argocd_customization())


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
    os.environ.update(LAUNCHER)
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
