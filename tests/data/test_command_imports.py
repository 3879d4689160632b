"""What the commands import and start. Imports are most of the time of a short command."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.parser import load_sink
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.ownership import Owner
from sink_job.ledger.session import LedgerAccess, LedgerSession
from sink_job.s3 import connect
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import CLOCK_MS

pytestmark = pytest.mark.data

SPARK = {"pyspark", "pandas"}
FORMATS = {"fastavro", "pyruhvro", "google", "ptars", "cbor2", "msgpack"}


@pytest.fixture
def sink_imports() -> tuple[str, ...]:
    """The imports of the program itself are the subject."""
    return ()


@pytest.fixture
def claimed(
    sink_fixture: SinkFixture,
    kafka: KafkaBroker,
    topics: Topics,
    s3: S3Server,
    topic: str,
    sink_of: Callable[[Mapping[str, Any]], SinkCommand],
) -> SinkCommand:
    """A sink whose ledger contains a claim and nothing else."""
    topics.create(topic)
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=s3.endpoint,
        bucket=sink_fixture.bucket,
        rotation={"flushSize": 10},
    )
    command = sink_of(manifest("imports", spec))
    sink = load_sink(command.path.read_text())
    root = ledger_root(connect(sink_fixture.settings), sink.spec.s3.topics_dir, sink.sink_id)
    owner = Owner("test", sink.namespace, sink.name, sink.sink_id)
    access = LedgerAccess(
        s3=connect(sink_fixture.settings), root=root, owner=owner, attempt=uuid.uuid4().hex, clock=lambda: CLOCK_MS
    )
    LedgerSession(access)
    command.env["PYTHONPROFILEIMPORTTIME"] = "1"
    return command


def modules(log: str) -> set[str]:
    """The modules that a command has imported, by the lines of PYTHONPROFILEIMPORTTIME."""
    return set(re.findall(r"^import time:[ \d|]+\| +([\w.]+)$", log, re.MULTILINE))


def imported(log: str) -> set[str]:
    """The packages of the modules."""
    return {name.partition(".")[0] for name in modules(log)}


@pytest.mark.parametrize("command", ["status", "verify"])
def test_a_command_that_only_asks_kafka_and_s3_imports_neither_spark_nor_formats(
    claimed: SinkCommand, command: str
) -> None:
    packages = imported(claimed.must(command))
    assert {"botocore", "py4j"} <= packages
    assert packages.isdisjoint(SPARK | FORMATS)


def test_a_run_with_json_lines_imports_no_format_and_no_spark_sql(claimed: SinkCommand) -> None:
    log = claimed.must("run", "--until-caught-up", "--take-over-from=test/default/imports/default.imports")
    assert "pyspark.core.context" in modules(log)
    assert imported(log).isdisjoint(FORMATS | {"pandas", "referencing", "confluent_kafka", "prometheus_client"})
    others = (
        "sink_job.avro.",
        "sink_job.parquet.",
        "sink_job.protobuf.",
        "sink_job.registry.clients.",
        "pyarrow.parquet",
    )
    assert [name for name in modules(log) if name.startswith((*others, "pyspark.sql", "pyspark.testing"))] == []
