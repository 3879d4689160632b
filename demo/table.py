"""`make demo ARGS=--table`: the flights as Parquet, and as a table in a REST catalog of Apache Iceberg."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Final

from demo.console import Show
from demo.flights import Flights, Month
from demo.scenario import PARQUET_RECORDS, Variant, months_table
from demo.servers import TABLE_MANIFEST, Servers
from devtools.iceberg_reader import packages, read_table
from devtools.iceberg_rest.jars import rest_jars
from devtools.iceberg_rest.server import iceberg_rest_server
from devtools.topics import Topics

WAREHOUSE: Final = "warehouse"
"""The bucket of the table's metadata."""
_QUERY: Final = """
result = {
    "months": connection.execute(
        "SELECT month, count(*), sum(dep_delay)::BIGINT, sum(distance)::BIGINT FROM t GROUP BY 1 ORDER BY 1"
    ).fetchall(),
    "snapshots": connection.execute("SELECT count(*) FROM iceberg_snapshots('METADATA')").fetchone()[0],
}
"""


class TableServers(Servers):
    """A broker, an S3 server and a REST catalog in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, manifest=TABLE_MANIFEST)
        self._stack = ExitStack()

    def fetch(self, show: Show) -> None:
        super().fetch(show)
        with show.spinner("fetching Iceberg's REST server and DuckDB's extension"):
            rest_jars()
            packages()

    def start(self, show: Show) -> None:
        super().start(show)
        self.s3.client().create_bucket(Bucket=WAREHOUSE)
        folder = self.folder / "catalog"
        folder.mkdir()
        catalog = iceberg_rest_server(folder, self.s3.endpoint, f"s3://{WAREHOUSE}/tables")
        self.spec["tables"][0]["catalog"]["uri"] = self._stack.enter_context(catalog)
        show.say(f"Iceberg's REST catalog at {self.catalog}")

    @property
    def catalog(self) -> str:
        return str(self.spec["tables"][0]["catalog"]["uri"])

    def stop(self) -> None:
        self._stack.close()
        super().stop()


def _check(show: Show, servers: TableServers, topics: Topics, flights: Flights) -> bool:
    """Shows a query over the table; returns whether the result is that of the data set."""
    from devtools.iceberg_rest.client import metadata_location

    show.step("The same query over the table lake.flights, which the sink has registered (DuckDB's Iceberg reader)")
    metadata = metadata_location(servers.catalog, "lake", servers.topic)
    with show.spinner("reading the table"):
        found = read_table(servers.s3.endpoint, metadata, _QUERY.replace("METADATA", metadata))
    months = [Month(*map(int, row)) for row in found["months"]]
    expected = flights.months()
    show.console.print(months_table(months, expected))
    equal = months == expected
    total = sum(month.flights for month in months)
    comparison = "[green]equal[/green]" if equal else "[red]NOT equal[/red]"
    show.say(f"{total:,} rows after {found['snapshots']} commits; the source has {len(flights):,}: {comparison}")
    return equal


TABLE: Final = Variant(
    heading="a year of flights from Kafka into a table of Apache Iceberg, each record once",
    data="A real data set in a topic with six partitions",
    servers=TableServers,
    kill_part=1,
    check=_check,
    content=PARQUET_RECORDS,
)
