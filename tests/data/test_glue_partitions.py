"""Partitions of a table in moto's AWS Glue, which was created from the output of `s3sink ddl --dialect glue`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from devtools.glue import ACCESS_KEY, REGION, SECRET_KEY, GlueServer, glue
from sink_job.api.enums import CatalogType
from sink_job.api.sections.secret_refs import SecretRef
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.cli import main as cli
from sink_job.ledger.store import Ledger
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.hive_tables.glue_partitions import GluePartitions
from sink_job.tables.hive_tables.registration import PartitionRegistration
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.plan import Request
from sink_job.tables.registrations.topic_table import TopicTable
from tests.support.catalog_front import login_folder
from tests.support.glue_front import glue_front
from tests.support.lake import LakeFixture
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

ROOT = "topics/_s3sink/default.log/"


@pytest.fixture(scope="module")
def server() -> Iterator[GlueServer]:
    """moto, for all tests of this file."""
    with glue() as found:
        yield found


class PartitionedSink:
    """A sink whose objects have directories of partitions, and the table of its topic in a database of its own."""

    def __init__(self, sink: SinkFixture, server: GlueServer, url: str, keys: Path) -> None:
        self.client: Any = server.client()
        self.database = f"d{uuid4().hex[:12]}"
        self.client.create_database(DatabaseInput={"Name": self.database})
        self.spec = CatalogSpec(
            type=CatalogType.GLUE_PARTITIONS, uri=url, region=REGION, credentials=SecretRef(secret="glue")
        )
        unused: Any = object()
        self.lake = LakeFixture(sink, spec=self.spec, catalog=unused)
        self.keys = keys
        self.secret = f"glue={keys}"

    def create(self, capsys: pytest.CaptureFixture[str]) -> None:
        path = str(self.lake.sink.folder / "sink.yaml")
        s3 = f"s3={self.lake.sink.settings.credentials_dir}"
        capsys.readouterr()
        assert cli.main(["ddl", path, "--dialect", "glue", "--secret", s3, "--secret", self.secret]) == 0
        lines = capsys.readouterr().out.splitlines()
        text = "\n".join(line for line in lines if not line.startswith(("--", "#")))
        self.client.create_table(DatabaseName=self.database, TableInput=json.loads(text))

    def register(self, *arguments: str) -> int:
        return self.lake.register(*arguments, "--secret", self.secret, name=f"{self.database}.{{topic}}")

    def registration(self) -> PartitionRegistration:
        s3 = self.lake.sink.s3
        view, objects = read_ledger(Ledger(s3, ROOT, "register"), "default.log")
        name = f"{self.database}.log"
        target = TopicTable(name, "log", objects["log"], view, ("topics/",), lambda seconds: None)
        store = GluePartitions(self.spec, CatalogAccess(credentials_dir=self.keys))
        return PartitionRegistration(s3, ROOT, store, target)

    def partitions(self) -> dict[str, str]:
        found = self.client.get_partitions(DatabaseName=self.database, TableName="log")["Partitions"]
        return {each["Values"][0]: each["StorageDescriptor"]["Location"] for each in found}


@pytest.fixture
def sink(sink_fixture: SinkFixture, server: GlueServer, tmp_path: Path) -> Iterator[PartitionedSink]:
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    with glue_front(server.url) as front:
        yield PartitionedSink(sink_fixture, server, front.url, login_folder(tmp_path / "glue", **keys))


def test_the_directories_of_published_objects_are_partitions_of_the_table(
    sink: PartitionedSink, capsys: pytest.CaptureFixture[str]
) -> None:
    sink.lake.run(25)
    assert sink.register() == 7
    assert "create it with the output of s3sink ddl --dialect glue" in capsys.readouterr().err
    sink.create(capsys)
    assert sink.register() == 0
    assert "added 1 partitions of 3 objects" in capsys.readouterr().out
    root = f"s3://{sink.lake.sink.bucket}/topics/log/"
    assert sink.partitions() == {"0": f"{root}partition=0/"}
    sink.lake.run(60, (2,))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: sink.registration().run(Request(from_beginning=True)), range(3)))
    assert [each.partitions for each in found] == [1, 1, 1]
    assert sink.register() == 0
    assert sink.partitions() == {"0": f"{root}partition=0/"}
