"""The commands behind `make demo`, `make demo-up` and `make demo-down`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from demo.console import Show
from demo.flights import Flights
from demo.scenario import JSON, PARQUET, play
from demo.servers import ROOT, Servers, forget, remembered

_MONTHS = "with --avro, --parquet and --table: only the first N months of the data set, at least 2"
LEFT_RUNNING = ROOT / ".cache" / "demo"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("command", choices=("run", "up", "down"))
    parser.add_argument("--avro", action="store_true", help="with run: Avro with a schema registry")
    parser.add_argument("--parquet", action="store_true", help="with run: Parquet objects from JSON with a schema")
    parser.add_argument("--table", action="store_true", help="with run: Parquet objects and an Iceberg table over them")
    parser.add_argument("--months", type=int, choices=range(2, 13), default=12, metavar="N", help=_MONTHS)
    args = parser.parse_args()
    variants = [args.avro, args.parquet, args.table]
    if sum(variants) > 1:
        parser.error("--avro, --parquet and --table exclude each other")
    if any(variants) and args.command != "run":
        parser.error("--avro, --parquet and --table require the command run")
    if args.months != parser.get_default("months") and not any(variants):
        parser.error("--months requires --avro, --parquet or --table")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped at exit
    show = Show()
    commands = {
        "run": lambda: run(show, args),
        "up": lambda: up(show),
    }
    return show.outcome(commands.get(args.command, lambda: down(show)))


def run(show: Show, args: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="s3sink-demo-", ignore_cleanup_errors=True) as name:
        if args.avro:
            from demo.avro import AVRO  # its serializers take a second to import

            good = play(show, Path(name), AVRO, months=args.months)
        elif args.table:
            from demo.table import TABLE  # imports more than the others need

            good = play(show, Path(name), TABLE, months=args.months)
        else:
            good = play(show, Path(name), PARQUET if args.parquet else JSON, months=args.months)
    code = show.result(good)
    if good:
        show.console.print("No server is left running. To try it yourself: make demo-up")
    return code


def up(show: Show) -> int:
    if remembered(LEFT_RUNNING):
        show.console.print("The demo's servers are already running; `make demo-down` stops them.")
        return 1
    servers = Servers(LEFT_RUNNING, stays=True)
    try:
        servers.fetch(show)
        servers.start(show)
        servers.fill(show, Flights())
        manifest = servers.write_manifest(servers.s3.endpoint)
        servers.write_table_manifest()
        servers.remember()
    except BaseException:
        servers.stop()
        raise
    path = manifest.relative_to(ROOT) if manifest.is_relative_to(ROOT) else manifest
    show.console.print(
        f"\nThe servers run until `make demo-down`. Next steps:\n\n"
        f"  . {path.parent / 'credentials.sh'}\n"
        f"  .venv/bin/s3sink run {path}\n"
        f"  .venv/bin/s3sink status {path}\n"
        f"  .venv/bin/s3sink verify {path} --deep\n\n"
        f"With a table of Apache Iceberg (docs/tables.md): {path.parent / 'flights-table.yaml'}\n",
        markup=False,
        highlight=False,
    )
    return 0


def down(show: Show) -> int:
    count = forget(LEFT_RUNNING)
    show.console.print(f"{count} servers stopped and their data removed." if count else "No servers were running.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
