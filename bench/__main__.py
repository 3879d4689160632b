"""`make bench`: starts servers, produces data once, writes results as a table and as JSON. See bench/README.md."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from bench.data import CASES
from bench.measure import Result
from bench.report import line, rounds_table, save, table
from bench.servers import broker, data_folder
from bench.suites import SUITES, Plan, scaled

QUICK = 0.1
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    args = _arguments()
    if args.clean:
        shutil.rmtree(data_folder(), ignore_errors=True)
        return 0
    scale = QUICK if args.quick else args.scale
    chosen = {name: CASES[name] for name in args.only or CASES}
    results: list[Result] = []
    settings = {"command": "python -m bench " + " ".join(sys.argv[1:]), "date": time.strftime("%Y-%m-%d %H:%M")}

    def report(result: Result) -> None:
        results.append({**result, "load": round(os.getloadavg()[0], 1)})
        print(line(results[-1]), file=sys.stderr, flush=True)
        save(args.out, results, settings)

    with broker(scaled(chosen, scale)) as server:
        plan = Plan(
            cases=scaled(chosen, scale),
            broker=server,
            repeat=1 if args.quick else args.repeat,
            cores=args.cores,
            report=report,
            scale=scale,
        )
        for name in args.suite or SUITES:
            SUITES[name](plan)
    print(table(results))
    print(rounds_table(results))
    print(f"written to {args.out}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="may be given again (default: all)")
    parser.add_argument("--only", action="append", choices=list(CASES), help="sizes of values (default: all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data and one warm pass: does it run?")
    parser.add_argument("--scale", type=float, default=1.0, metavar="FACTOR", help="so much of the data")
    parser.add_argument("--repeat", type=int, default=3, help="warm passes, of which the table shows the median")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="tasks at a time")
    parser.add_argument("--out", type=Path, default=RESULTS / "latest.json", help="where the results go")
    parser.add_argument("--clean", action="store_true", help="remove the topics that are kept between runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
