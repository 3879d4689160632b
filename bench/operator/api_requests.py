"""The requests that the API server has answered, by its own count, and the CPU time that it took for them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_REQUEST = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_OF_USERS = ("POST s3sinks", "PATCH s3sinks", "DELETE s3sinks", "PATCH pods/status")
"""Requests of the bench: its users and its kubelet."""
_LEAST = 0.1


def cpu_s(pid: int) -> float:
    """User and system time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def requests(metrics: str) -> Counter[str]:
    """The requests so far by verb, resource and HTTP status, from the text of the API server's /metrics."""
    found: Counter[str] = Counter()
    for labels, number in _REQUEST.findall(metrics):
        label = dict(_LABEL.findall(labels))
        resource = "/".join(each for each in (label["resource"], label["subresource"]) if each)
        found[f"{label['verb']} {resource} {label['code']}"] += int(float(number))
    return found


def of_operator(found: Mapping[str, int], sinks: int) -> dict[str, float]:
    """The requests for each sink, without those of the bench and without rare ones."""
    by_sink = {name: round(number / sinks, 2) for name, number in sorted(found.items())}
    return {name: each for name, each in by_sink.items() if each >= _LEAST and not name.startswith(_OF_USERS)}
