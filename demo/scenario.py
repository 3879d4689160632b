"""The demo: fill a topic, run the sink, kill it during an upload, run it again, verify everything."""

from __future__ import annotations

import io
import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import duckdb
import pyarrow.parquet as pq
from rich.table import Table
from rich.tree import Tree

from demo.console import Show
from demo.flights import Flights, Month
from demo.servers import ROOT, Servers
from devtools import bucket_listing
from devtools.faults.s3_proxy import FaultProxy, Kill
from devtools.faults.s3_requests import S3Request
from devtools.processes import Process, ServerFailedError, wait_until
from devtools.sink_process import SinkCommand
from devtools.topics import Topics

_RUN_SECONDS = 600
_SHOWN_EVERY_S = 0.5
_CATCH_UP = ("--until-caught-up", "--publish-open", "--progress", "never")


_S = TypeVar("_S", bound=Servers)


def _no_check(show: Show, servers: Servers, topics: Topics, flights: Flights) -> bool:
    return True


@dataclass(frozen=True)
class Content:
    """How objects are read: the pattern of their names, DuckDB's table of the files of a pattern, the number of records
    in the bytes of an object, and what a record is called."""

    pattern: str
    table: str
    count: Callable[[bytes], int]
    unit: str


LINES: Final = Content(
    "*.json",
    "read_json(?, format = 'newline_delimited', hive_partitioning = true,"
    " columns = {dep_delay: 'BIGINT', distance: 'BIGINT'})",
    lambda content: content.count(b"\n"),
    "lines",
)
PARQUET_RECORDS: Final = Content(
    "*.parquet",
    "read_parquet(?, hive_partitioning = true)",
    lambda content: int(pq.read_metadata(io.BytesIO(content)).num_rows),
    "records",
)


@dataclass(frozen=True)
class Variant(Generic[_S]):
    """What differs between the demos on a laptop.

    `kill_part` is the number of the part whose upload is interrupted. `check` shows and checks what only this variant
    has; it returns whether the check passed.
    """

    heading: str
    data: str
    servers: Callable[[Path], _S]
    kill_part: int
    check: Callable[[Show, _S, Topics, Flights], bool] = _no_check
    content: Content = LINES


JSON: Final = Variant(
    heading="a year of flights from Kafka into S3, exactly once",
    data="A real data set in a topic with six partitions",
    servers=Servers,
    kill_part=2,
)
PARQUET: Final = Variant(
    heading="a year of flights from Kafka into Parquet objects in S3, exactly once",
    data="A real data set in a topic with six partitions",
    servers=lambda folder: Servers(folder, manifest=ROOT / "examples" / "flights-parquet.yaml"),
    kill_part=1,
    content=PARQUET_RECORDS,
)


def play(show: Show, folder: Path, variant: Variant[_S], *, months: int = 12) -> bool:
    """Runs the demo with the first months of the data set; returns whether all checks passed. Stops the servers and
    removes their data at the end."""
    show.console.print(f"[bold]s3sink demo[/bold]: {variant.heading}")
    servers = variant.servers(folder)
    sink: SinkCommand | None = None
    try:
        show.step("Real servers on this machine")
        servers.fetch(show)
        servers.start(show)

        show.step(variant.data)
        with show.spinner("reading the data set"):
            flights = Flights(months)
        topics = servers.fill(show, flights)
        show.say(", ".join(f"{partition}: {end:,}" for partition, end in topics.ends(servers.topic).items()))

        with FaultProxy(servers.s3.endpoint) as proxy:
            servers.write_manifest(proxy.endpoint)
            sink = SinkCommand(folder / "sink", servers.manifest)
            in_the_middle = _upload_of(proxy, variant.kill_part, after_objects=months)
            _killed_run(show, servers, sink, proxy, topics, len(flights), in_the_middle)
            _second_run(show, servers, sink, proxy, topics, len(flights))
            show.step("s3sink verify --deep: every record in exactly one object, compared with Kafka")
            with show.spinner("verifying"):
                verified = sink.must("verify", "--deep", seconds=_RUN_SECONDS)
            show.console.print(verified.rstrip(), markup=False, highlight=False, soft_wrap=True)
        equal = query(show, servers, flights, variant.content)
        return variant.check(show, servers, topics, flights) and equal
    finally:
        if sink:
            sink.kill()
        servers.stop()


def _upload_of(proxy: FaultProxy, part: int, *, after_objects: int) -> Callable[[S3Request], bool]:
    """Whether a request uploads this part of an object, and this number of objects is complete."""

    def is_it(request: S3Request) -> bool:
        done = proxy.kinds()["CompleteMultipartUpload"]
        return request.kind == "UploadPart" and request.part == part and done >= after_objects

    return is_it


def _killed_run(
    show: Show,
    servers: Servers,
    sink: SinkCommand,
    proxy: FaultProxy,
    topics: Topics,
    total: int,
    in_the_middle: Callable[[S3Request], bool],
) -> None:
    show.step(f"s3sink run {servers.example.relative_to(ROOT)}, killed with SIGKILL in the middle of an upload")
    process = sink.start("run", *_CATCH_UP)
    rule = proxy.when(in_the_middle, Kill(process))
    _watch(show, sink, process, topics, servers, total, until=lambda: bool(rule.fired))
    if not rule.fired:
        raise ServerFailedError(f"the sink ended before it could be killed:\n{process.last_lines()}")
    request = rule.fired[0]
    show.say(f"[bold red]kill -9[/bold red] of all its processes at part {request.part} of {request.key}")
    client = servers.s3.client()
    everything = bucket_listing.objects(client, servers.bucket, ledger=True)
    visible = [key for key in everything if "_s3sink/" not in key]
    records = sum("/ledger/" in key for key in everything)
    uploads = len(bucket_listing.uploads(client, servers.bucket))
    show.say(
        f"in the bucket: {len(visible)} visible objects, {uploads} started uploads (invisible to readers), "
        f"{records} records in the ledger"
    )


def _second_run(show: Show, servers: Servers, sink: SinkCommand, proxy: FaultProxy, topics: Topics, total: int) -> None:
    show.step("The same command again")
    proxy.resume()
    proxy.forget()
    process = sink.start("run", *_CATCH_UP)
    _watch(show, sink, process, topics, servers, total, until=lambda: not process.running())
    if process.wait(10):
        raise ServerFailedError(f"s3sink run exited with {process.wait(1)}:\n{process.last_lines()}")
    client = servers.s3.client()
    objects = len(bucket_listing.objects(client, servers.bucket))
    uploads = len(bucket_listing.uploads(client, servers.bucket))
    show.say(f"{objects} visible objects, {proxy.kinds()['UploadPart']} more parts uploaded, {uploads} started uploads")


def _watch(
    show: Show,
    sink: SinkCommand,
    process: Process,
    topics: Topics,
    servers: Servers,
    total: int,
    *,
    until: Callable[[], bool],
) -> None:
    """Shows the committed offsets while the sink runs."""
    group = f"s3sink-default.{servers.manifest['metadata']['name']}"
    with show.bar("records in S3 (committed offsets)", total, "records") as advance:
        shown = 0.0

        def over() -> bool:
            nonlocal shown
            ended = until() or not process.running()
            if ended or time.monotonic() > shown + _SHOWN_EVERY_S:
                advance(sum(topics.committed(group, servers.topic).values()))
                shown = time.monotonic()
            return ended

        wait_until(over, "s3sink run", seconds=_RUN_SECONDS)


def query(show: Show, servers: Servers, flights: Flights, content: Content = LINES) -> bool:
    """Shows the objects and runs a query over them; returns whether the result equals that of the data set."""
    show.step("The objects and their content")
    client = servers.s3.client()
    with tempfile.TemporaryDirectory(dir=servers.folder) as name:
        lake = Path(name)
        counts = {}
        for key in bucket_listing.objects(client, servers.bucket):
            body = bucket_listing.body(client, servers.bucket, key)
            counts[key] = (len(body), content.count(body))
            (lake / key).parent.mkdir(parents=True, exist_ok=True)
            (lake / key).write_bytes(body)
        show.console.print(_as_tree(servers.bucket, counts, content.unit))
        found = _months(lake, content)
    expected = flights.months()
    show.step("A query over the objects (DuckDB), compared with the data set")
    show.console.print(months_table(found, expected))
    same = found == expected
    total = sum(month.flights for month in found)
    comparison = "[green]equal[/green]" if same else "[red]NOT equal[/red]"
    show.say(f"{total:,} flights in {len(counts)} objects; the source has {len(flights):,}: {comparison}")
    return same


def _months(lake: Path, content: Content) -> list[Month]:
    """The sums of all objects' records by the month in their paths."""
    rows = duckdb.execute(
        "SELECT month::INT, count(*), sum(dep_delay)::BIGINT, sum(distance)::BIGINT"
        f" FROM {content.table} GROUP BY 1 ORDER BY 1",
        [str(lake / "**" / content.pattern)],
    ).fetchall()
    return [Month(*row) for row in rows]


def _as_tree(bucket: str, counts: dict[str, tuple[int, int]], unit: str) -> Tree:
    """The folders and their objects, with bytes and numbers of records."""
    root = Tree(
        f"[bold]s3://{bucket}[/bold]: {len(counts)} objects, {sum(count for _, count in counts.values()):,} {unit}"
    )
    for folder, group in itertools.groupby(sorted(counts), key=lambda key: key.rpartition("/")[0]):
        keys = list(group)
        branch = root.add(f"{folder}/  {sum(counts[key][1] for key in keys):,} {unit}")
        for key in keys:
            size, count = counts[key]
            branch.add(f"{key.rpartition('/')[2]}  {count:>7,} {unit}  {size / 1e6:5.1f} MB")
    return root


def months_table(found: list[Month], expected: list[Month]) -> Table:
    """The sums of the months, and whether they are those of the source."""
    table = Table("month", "flights", "minutes of delay", "miles", "", box=None, padding=(0, 3))
    for column in table.columns:
        column.justify = "right"
    by_month = {month.month: month for month in found}
    for month in expected:
        ours = by_month.get(month.month)
        mark = "[green]= source[/green]" if ours == month else f"[red]source: {month.flights:,} flights[/red]"
        shown = ours or Month(month.month, 0, 0, 0)
        table.add_row(f"2013-{shown.month:02}", f"{shown.flights:,}", f"{shown.delay:,}", f"{shown.miles:,}", mark)
    return table
