"""The commands behind `make demo`, `make demo-up` and `make demo-down`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from demo.console import Show
from demo.flights import Flights
from demo.scenario import play
from demo.servers import ROOT, Servers, forget, remembered

LEFT_RUNNING = ROOT / ".cache" / "demo"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("command", choices=("run", "up", "down"))
    command = parser.parse_args().command
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped at exit
    show = Show()
    return show.outcome(lambda: {"run": run, "up": up, "down": down}[command](show))


def run(show: Show) -> int:
    with tempfile.TemporaryDirectory(prefix="s3sink-demo-", ignore_cleanup_errors=True) as name:
        good = play(show, Path(name))
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
        f"  .venv/bin/s3sink verify {path} --deep\n",
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
