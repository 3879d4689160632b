"""Fixtures of all tests: a broker for all workers, an S3 server for each, and unique names for each test.

A test that must stop, kill or configure a server starts its own with `devtools`.
"""

from __future__ import annotations

import gc
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from devtools.argocd import argocd_customization
from devtools.faults.s3_proxy import FaultProxy
from devtools.kafka import KafkaBroker
from devtools.prometheus import prometheus_programs
from devtools.s3 import S3Server, s3_server
from devtools.sink_process import LAUNCHER, SHORT_RUN, SinkCommand, short_run, sink_command
from devtools.topics import Topics
from tests.support import forked
from tests.support.argocd import ArgoCd
from tests.support.chart import Helm, Renderer, helm_in, renderer
from tests.support.shared_broker import shared_broker

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

    from tests.support.scheduling import FileScheduling
    from tests.support.spark_fixture import SparkFixture

settings.register_profile("same", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=500, print_blob=True)
settings.register_profile("fast", deadline=None, max_examples=20, derandomize=True)
settings.load_profile("same")

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]
# What a test starts decides at which level it runs: `make test` builds neither Kubernetes nor helm.
MARKER_OF_FIXTURE = {
    "tests.conftest.kafka": "data",
    "tests.conftest.s3": "data",
    "tests.data.registry.conftest.server": "data",
    "tests.conftest.spark": "spark",
    "tests.conftest.helm": "cluster",
    "tests.conftest.promtool": "cluster",
    "tests.conftest.argocd": "cluster",
    "tests.cluster.conftest.control_plane": "cluster",
}

FIRST_FILES = (
    "data/test_cli_errors.py",
    "data/test_crash_points.py",
    "data/test_request_crashes.py",
    "model/test_promises_hold.py",
    "data/test_rounds.py",
    "data/test_reset.py",
    "data/test_scenarios.py",
    "data/test_demo.py",
    "data/test_bad_situations.py",
    "data/test_chaos.py",
    "data/test_request_commands.py",
    "data/verify/test_passes.py",
    "data/test_data_loss_crashes.py",
    "data/test_schema_registry.py",
    "data/test_projection.py",
    "data/test_schemas.py",
    "data/test_demo_avro.py",
    "data/test_demo_parquet.py",
    "data/test_apicurio_registry.py",
    "data/test_glue_registry.py",
    "data/test_end_reasons.py",
    "data/test_deleted_topics.py",
    "data/test_two_drivers.py",
    "data/test_kafka_cases.py",
    "model/test_rules.py",
    "data/test_edited_location.py",
    "simulation/test_mutations.py",
    "data/test_verify_command.py",
    "data/test_reader.py",
    "unit/coordinator/test_s3_outcomes.py",
)
"""The files of `make test` that take more than a minute with four workers on two busy CPUs, the longest first."""
_FIRST_MARKERS = ("e2e", "spark", "cluster", "model", "data")
_TESTS = Path(__file__).parent
_END = len(FIRST_FILES) + len(_FIRST_MARKERS)


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
    """Rejects tests that would start a server at a level that has none, and puts the longest files first.

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
    first: dict[Path, int] = {_TESTS / name: rank for rank, name in enumerate(FIRST_FILES)}
    for item in items:
        first[item.path] = min(_rank(item), first.get(item.path, _END))
    items.sort(key=lambda item: first[item.path])


def _rank(item: pytest.Item) -> int:
    """The rank of a test whose file is not in FIRST_FILES, by its markers."""
    marks = {mark.name for mark in item.iter_markers()}
    found = next((rank for rank, mark in enumerate(_FIRST_MARKERS) if mark in marks), len(_FIRST_MARKERS))
    return len(FIRST_FILES) + found


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling | None:
    """With `--dist loadfile`, the files that share a Spark session stay together too."""
    from tests.support.scheduling import FileScheduling

    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Takes the collected tests and modules out of the view of the garbage collector.

    They are several million objects that stay. A full collection would look at all of them, again and again.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that all tests of all workers share. Keep it running, and use only your own topics."""
    folder = tmp_path_factory.getbasetemp()
    with shared_broker(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) as broker:
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
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Runs helm; built when it has never been."""
    return helm_in(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def template(helm: Helm) -> Renderer:
    """Renders the chart; the result is shared, so tests do not change it."""
    return renderer(helm)


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
def sink_imports() -> Sequence[str]:
    """The modules of the process from which commands are forked. A file whose subject is the program has none."""
    return forked.IMPORTS


@pytest.fixture
def sink_of(tmp_path: Path, sink_imports: Sequence[str]) -> Iterator[SinkFactory]:
    """Returns a factory of `Sink` (the s3sink command); its processes are killed after the test."""
    with ExitStack() as stack:

        def make(document: Mapping[str, Any]) -> SinkCommand:
            folder = tmp_path / f"sink-{document['metadata']['name']}-{uuid.uuid4().hex[:4]}"
            return stack.enter_context(sink_command(folder, short_run(document), imports=sink_imports))

        yield make


@pytest.fixture
def sink_here(tmp_path: Path, sink_imports: Sequence[str], spark: SparkContext) -> Iterator[SinkFactory]:
    """As `sink_of`, for commands that run until they end: in this process, on the shared Spark."""
    from tests.support.command_here import CommandHere

    with ExitStack() as stack:

        def make(document: Mapping[str, Any]) -> SinkCommand:
            folder = tmp_path / f"sink-{document['metadata']['name']}-{uuid.uuid4().hex[:4]}"
            command = CommandHere(spark, folder, short_run(document), imports=sink_imports)
            stack.callback(command.kill)
            return command

        yield make


@pytest.fixture(scope="session")
def spark_working_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of the shared Spark; nothing is written to it."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_working_dir: Path) -> Iterator[SparkContext]:
    """Spark in this process, shared by all tests of this worker. Keep it running. It leaves no files."""
    from sink_job.spark.conf import SparkSettings
    from sink_job.spark.jars import client_jars
    from sink_job.spark.session import session

    temp = tmp_path_factory.mktemp("spark")
    conf = {**SHORT_RUN, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    settings = SparkSettings(app_name="tests", jars=client_jars(), cores=2, heap=512 << 20, temp_dir=temp, conf=conf)
    os.environ.update(LAUNCHER)
    with ExitStack() as stack:
        with chdir(spark_working_dir):
            running = stack.enter_context(session(settings))
        yield running
    assert list(temp.iterdir()) == []


@pytest.fixture(scope="session")
def sql(spark: SparkContext) -> SparkSession:
    """Spark SQL on the shared Spark, to read objects. A sink does not use it."""
    from pyspark.sql import SparkSession

    session = SparkSession(spark)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


@pytest.fixture
def spark_fixture(
    spark: SparkContext, kafka: KafkaBroker, topics: Topics, s3: S3Server, bucket: str, tmp_path: Path
) -> SparkFixture:
    """Runs sinks in this process, on the shared servers and the test's own bucket."""
    from tests.support.spark_fixture import SparkFixture

    return SparkFixture(spark=spark, topics=topics, bootstrap=kafka.bootstrap, s3=s3, bucket=bucket, folder=tmp_path)
