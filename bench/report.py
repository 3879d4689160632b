"""Results as a table and as a file."""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.measure import Result

COLUMNS = (
    "stage", "settings", "case", "target", "pass", "n", "krec/s", "MB/s", "MB/CPU-s", "CPU-s/GB", ": consumer", "jvm",
    "python", "s3", "broker", "JVM MB", "Python MB", "tree MB", "req/GB",
)  # fmt: skip


def line(result: Result) -> str:
    """A result in one line, printed when it is complete."""
    shown = {k: v for k, v in result.items() if k not in ("rounds_ms", "requests")}
    return json.dumps(shown)


def table(results: Iterable[Result]) -> str:
    """The medians of repeated measurements as a Markdown table; ": consumer" is the CPU time in relation to that of the
    plain consumer in the same run."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for each in results:
        if "mb_per_s" in each:
            key = tuple(str(each.get(name, "")) for name in ("stage", "settings", "case", "target", "pass"))
            groups.setdefault(key, []).append(each)
    consumers = {_turns(group): _own_cpu(group) for group in groups.values() if group[0]["stage"] == "consumer"}
    rows = [[*key, str(len(group)), *_numbers(group, consumers.get(_turns(group)))] for key, group in groups.items()]
    return _markdown(COLUMNS, rows)


def _turns(group: Sequence[Result]) -> tuple[object, ...]:
    """What a stage has in common with the consumer of the same topic."""
    return tuple(group[0].get(name) for name in ("case", "values", "pass"))


def _own_cpu(group: Sequence[Result]) -> float | None:
    found = [value for each in group if (value := _at(each, ("own_cpu_s_per_gb",))) is not None]
    return statistics.median(found) if found else None


def rounds_table(results: Iterable[Result]) -> str:
    """The table of rounds with few records."""
    names = ("partitions", "busy", "rounds", "first_ms", "median_ms", "cpu_s_per_round", "requests_per_round")
    rows = [[str(each[name]) for name in names] for each in results if each.get("stage") == "rounds"]
    return _markdown(names, rows) if rows else ""


def save(path: Path, results: Sequence[Result], settings: Mapping[str, Any]) -> None:
    """The results, the machine and the versions, in one file."""
    document = {"settings": dict(settings), "machine": _machine(), "results": list(results)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def _numbers(group: Sequence[Result], consumer: float | None) -> list[str]:
    own = _own_cpu(group)

    def median(*path: str, default: str = "–") -> str:
        found = [value for each in group if (value := _at(each, path)) is not None]
        return f"{statistics.median(found):.4g}" if found else default

    per_s = [each["records_per_s"] / 1e3 for each in group if "records_per_s" in each]
    python = [
        sum(_at(each, ("cpu_s_per_gb", role)) or 0.0 for role in ("driver", "workers"))
        for each in group
        if "cpu_s_per_gb" in each
    ]
    python_mb = [
        each["peak_mb"].get("python") or each["peak_mb"].get("driver", 0) + each["peak_mb"].get("workers", 0)
        for each in group
    ]
    return [
        f"{statistics.median(per_s):,.0f}" if per_s else "–",
        median("mb_per_s"),
        median("mb_per_cpu_s"),
        median("own_cpu_s_per_gb"),
        f"{own / consumer:.2f}" if own and consumer else "–",
        median("cpu_s_per_gb", "jvm"),
        f"{statistics.median(python):.3g}" if python else "–",
        median("cpu_s_per_gb", "s3"),
        median("cpu_s_per_gb", "broker"),
        median("peak_mb", "jvm"),
        f"{max(python_mb):,}",
        median("peak_tree_mb", "pss"),
        median("requests_per_gb"),
    ]


def _at(result: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = result
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if value is not None else None


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(each) + " |" for each in lines)


def _machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((each.partition(":")[2].strip() for each in lines if each.startswith("model name")), "unknown")
    return {
        "cpu": model,
        "cpus": sum(each.startswith("processor") for each in lines),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("pyspark", "pyarrow", "boto3", "numpy")},
    }
