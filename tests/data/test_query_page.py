"""The steps of docs/query.md: a real sink, and DuckDB on a local copy of its bucket (its extension for S3 is no part of
the package)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from sink_job.ddl.sink_tables import table_names

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "query.md"


def blocks() -> list[str]:
    """The code blocks of the first section."""
    section = PAGE.read_text(encoding="utf-8").split("\n## ")[1]
    found = re.findall(r"(?ms)^( *)```\w*\n(.*?)^\1```$", section)
    return ["\n".join(line.removeprefix(indent) for line in body.splitlines()) for indent, body in found]


def test_the_steps_lead_to_the_rows_on_the_page(
    kafka: KafkaBroker, topics: Topics, s3: S3Server, topic: str, bucket: str, sink_here: SinkFactory, tmp_path: Path
) -> None:
    records, text, commands, printed, queries, expected = blocks()
    topics.create(topic)
    topics.produce_values(topic, [line.encode() for line in records.splitlines()])
    given = yaml.safe_load(text)["spec"]
    spec = local_spec(
        bootstrap=kafka.bootstrap, topics=[topic], endpoint=s3.endpoint, bucket=bucket, rotation=given["rotation"]
    )
    sink = sink_here(manifest("flights", {**spec, "format": given["format"], "partitioner": given["partitioner"]}))
    run, ddl = (line.split()[1:] for line in commands.splitlines())
    assert run[1] == ddl[1] == "flights.yaml"
    sink.must(run[0], *run[2:])
    statement = sink.must(ddl[0], *ddl[2 : ddl.index(">")])
    name = table_names([topic])[topic]

    def here(line: str) -> str:
        return line.replace("flights-archive", bucket).replace("topics/flights", f"topics/{topic}")

    assert here(printed).replace('"flights"', f'"{name}"').splitlines()[-2:] == statement.splitlines()[-2:]

    client = s3.client()
    for item in client.list_objects_v2(Bucket=bucket)["Contents"]:
        path = tmp_path / "copy" / item["Key"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read())
    with duckdb.connect() as connection:
        connection.execute(statement.replace(f"s3://{bucket}", str(tmp_path / "copy")))
        read, query = queries.splitlines()
        assert read == ".read flights.sql"
        rows = connection.execute(query.replace("FROM flights", f'FROM "{name}"')).fetchall()
    assert [" ".join(map(str, row)) for row in rows] == [" ".join(line.split()) for line in expected.splitlines()]
