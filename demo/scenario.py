"""The demo: fill a topic, run the sink, kill it during an upload, run it again, verify everything."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
from rich.table import Table
from rich.tree import Tree

from demo.console import Show
from demo.flights import Flights, Month
from demo.servers import MANIFEST, ROOT, Servers
from devtools import bucket_listing
from devtools.faults.s3_proxy import FaultProxy, Kill
from devtools.faults.s3_requests import S3Request
from devtools.processes import Process, ServerFailedError, wait_until
from devtools.sink_process import SinkCommand
from devtools.topics import Topics

_KILL_AFTER_OBJECTS = 12
_RUN_SECONDS = 600
_CATCH_UP = ("--until-caught-up", "--publish-open", "--progress", "never")


def play(show: Show, folder: Path) -> bool:
    """Runs the demo; returns whether all checks passed. Stops the servers and removes their data at the end."""
    show.console.print("[bold]s3sink demo[/bold]: a year of flights from Kafka into S3, exactly once")
    servers = Servers(folder)
    sink: SinkCommand | None = None
    try:
        show.step("Real servers on this machine")
        servers.fetch(show)
        servers.start(show)

        show.step("A real data set in a topic with six partitions")
        with show.spinner("reading the data set"):
            flights = Flights()
        topics = servers.fill(show, flights)
        show.say(", ".join(f"{partition}: {end:,}" for partition, end in topics.ends(servers.topic).items()))

        with FaultProxy(servers.s3.endpoint) as proxy:
            servers.write_manifest(proxy.endpoint)
            sink = SinkCommand(folder / "sink", servers.manifest)
            _killed_run(show, servers, sink, proxy, topics, len(flights))
            _second_run(show, servers, sink, proxy, topics, len(flights))
            show.step("s3sink verify --deep: every record in exactly one object, compared with Kafka")
            with show.spinner("verifying"):
                verified = sink.must("verify", "--deep", seconds=_RUN_SECONDS)
            show.console.print(verified.rstrip(), markup=False, highlight=False, soft_wrap=True)
        return query(show, servers, flights)
    finally:
        if sink:
            sink.kill()
        servers.stop()


def _killed_run(show: Show, servers: Servers, sink: SinkCommand, proxy: FaultProxy, topics: Topics, total: int) -> None:
    show.step(f"s3sink run {MANIFEST.relative_to(ROOT)}, killed with SIGKILL in the middle of an upload")
    process = sink.start("run", *_CATCH_UP)

    def in_the_middle(request: S3Request) -> bool:
        done = proxy.kinds()["CompleteMultipartUpload"]
        return request.kind == "UploadPart" and request.part == 2 and done >= _KILL_AFTER_OBJECTS

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

        def over() -> bool:
            advance(sum(topics.committed(group, servers.topic).values()))
            return until() or not process.running()

        wait_until(over, "s3sink run", seconds=_RUN_SECONDS)


def query(show: Show, servers: Servers, flights: Flights) -> bool:
    """Shows the objects and runs a query over them; returns whether the result equals that of the data set."""
    show.step("The objects and their content")
    client = servers.s3.client()
    with tempfile.TemporaryDirectory(dir=servers.folder) as name:
        lake = Path(name)
        counts = {}
        for key in bucket_listing.objects(client, servers.bucket):
            content = bucket_listing.body(client, servers.bucket, key)
            counts[key] = (len(content), content.count(b"\n"))
            (lake / key).parent.mkdir(parents=True, exist_ok=True)
            (lake / key).write_bytes(content)
        show.console.print(_as_tree(servers.bucket, counts))
        found = _months(lake)
    expected = flights.months()
    show.step("A query over the objects (DuckDB), compared with the data set")
    show.console.print(_as_table(found, expected))
    same = found == expected
    total = sum(month.flights for month in found)
    comparison = "[green]equal[/green]" if same else "[red]NOT equal[/red]"
    show.say(f"{total:,} flights in {len(counts)} objects; the source has {len(flights):,}: {comparison}")
    return same


def _months(lake: Path) -> list[Month]:
    """The sums of all objects' lines by the month in their paths."""
    files = str(lake / "**" / "*.json")
    rows = duckdb.execute(
        "SELECT month::INT, count(*), sum(dep_delay)::BIGINT, sum(distance)::BIGINT"
        " FROM read_json(?, format = 'newline_delimited', hive_partitioning = true,"
        "  columns = {dep_delay: 'BIGINT', distance: 'BIGINT'}) GROUP BY 1 ORDER BY 1",
        [files],
    ).fetchall()
    return [Month(*row) for row in rows]


def _as_tree(bucket: str, counts: dict[str, tuple[int, int]]) -> Tree:
    """The folders and their objects, with bytes and lines."""
    root = Tree(
        f"[bold]s3://{bucket}[/bold]: {len(counts)} objects, {sum(lines for _, lines in counts.values()):,} lines"
    )
    for folder, group in itertools.groupby(sorted(counts), key=lambda key: key.rpartition("/")[0]):
        keys = list(group)
        branch = root.add(f"{folder}/  {sum(counts[key][1] for key in keys):,} lines")
        for key in keys:
            size, lines = counts[key]
            branch.add(f"{key.rpartition('/')[2]}  {lines:>7,} lines  {size / 1e6:5.1f} MB")
    return root


def _as_table(found: list[Month], expected: list[Month]) -> Table:
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
