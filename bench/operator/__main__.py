"""`make bench-operator`: a real API server, the operator on a core of its own, played pods. See bench/README.md."""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.operator.run import NAMESPACES, Result, run
from bench.operator.simulated_users import Players
from bench.report import save
from devtools.kube.control_plane import ControlPlane
from devtools.kube.fake_driver_report import ReportServer
from devtools.operator_process import Operator

ROOT = Path(__file__).resolve().parents[2]
SIZES = (10, 100, 500, 1000)
_SHOWN: Mapping[str, Sequence[str]] = {
    "launches/min": ("create", "launches_per_minute"),
    "CR → pod p50 s": ("create", "cr_to_pod_s", "p50"),
    "p99 s": ("create", "cr_to_pod_s", "p99"),
    "one by one p50 s": ("one_by_one", "cr_to_pod_s", "p50"),
    "phase → status p99 s": ("create", "phase_to_status_s", "p99"),
    "report → status p99 s": ("report_to_status_s", "p99"),
    "failure → status p99 s": ("failure_to_status_s", "p99"),
    "writes to create": ("create", "writes_per_sink"),
    "events": ("create", "events_per_sink"),
    "writes to restart": ("edit", "writes_per_sink"),
    "restarts/min": ("edit", "restarts_per_minute"),
    "requests to create": ("create", "requests_per_sink"),
    "to restart": ("edit", "requests_per_sink"),
    "CPU ms a launch": ("create", "cpu_ms_per_sink"),
    "a restart": ("edit", "cpu_ms_per_sink"),
    "API server's": ("create", "api_server_cpu_ms_per_sink"),
    "core at rest": ("rest", "cpu_share"),
    "MB at rest": ("rest", "memory_mb"),
    "MB peak": ("memory_peak_mb",),
    "recovery s": ("recovery", "all_looked_at_s"),
}


def main() -> int:
    args = _arguments()
    cores = sorted(os.sched_getaffinity(0))
    mine, others = {cores[-1]}, set(cores[:-1]) or set(cores)
    os.sched_setaffinity(0, others)  # of what is started from here on, too
    results: list[Result] = []
    settings = {
        "command": "python -m bench.operator " + " ".join(sys.argv[1:]),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }
    crds = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    with tempfile.TemporaryDirectory(prefix="s3sink-bench-") as name, ReportServer() as reports:
        folder = Path(name)
        with ControlPlane(folder, crds=crds) as control_plane:
            kubeconfig = control_plane.kubeconfig()

            def begin() -> Operator:
                pinned = ["taskset", "-c", ",".join(map(str, mine))]
                return Operator(folder, kubeconfig, None, "--log", "text", under=pinned)

            async def work() -> None:
                api_server = control_plane.processes["kube-apiserver"].pid
                async with Players(control_plane.admin, reports, api_server) as players:
                    for number in range(NAMESPACES):
                        await players.make_namespace(f"bench-{number}")
                    for count in args.sinks or SIZES:
                        for _ in range(args.repeat):
                            results.append({})

                            def report(figures: Result) -> None:
                                print(figures, file=sys.stderr, flush=True)
                                results[-1].update(figures, load=round(os.getloadavg()[0], 1))
                                save(args.out, results, settings)

                            await run(players, begin, count, rest_s=args.rest, report=report)

            asyncio.run(work())
    print(_table(results))
    return 0


def _table(results: Sequence[Result]) -> str:
    rows = [["sinks", *_SHOWN], ["---"] * (len(_SHOWN) + 1)]
    for count in sorted({each["sinks"] for each in results}):
        group = [each for each in results if each["sinks"] == count]
        medians = [statistics.median(float(_at(each, path)) for each in group) for path in _SHOWN.values()]
        rows.append([str(count), *(f"{value:.4g}" for value in medians)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _at(result: Any, path: Sequence[str]) -> Any:
    for name in path:
        result = result[name]
    return result


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.operator", description=__doc__)
    parser.add_argument("--sinks", type=int, action="append", help=f"may be given again (default: {SIZES})")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the table shows the median")
    parser.add_argument("--rest", type=float, default=20, metavar="SECONDS", help="how long nothing happens")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "operator.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
