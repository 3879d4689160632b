"""A Prometheus of this machine that scrapes what ServiceMonitors and PodMonitors of the Prometheus operator select."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml

from devtools.processes import LOOPBACK, Process, free_ports, killed_at_end, wait_until
from devtools.prometheus import prometheus_programs

Json = dict[str, Any]
_START_SECONDS = 60.0
_EVERY = "1s"
"""Interval of scrapes and evaluations, as Prometheus writes it: tests need two scrapes soon."""
_UPPER = re.compile(r"[A-Z]")


@dataclass(frozen=True)
class Target:
    """An address (`host:port`) and the labels that service discovery gives it, `__meta_` labels included."""

    address: str
    labels: Mapping[str, str]


def scrape_configs(monitor: Json, targets: Sequence[Target]) -> list[Json]:
    """What the Prometheus operator makes of a ServiceMonitor or PodMonitor, for targets that are known."""
    meta, spec = monitor["metadata"], monitor["spec"]
    endpoints = spec.get("endpoints") or spec["podMetricsEndpoints"]
    return [
        {
            "job_name": f"{monitor['kind']}/{meta['namespace']}/{meta['name']}/{number}",
            "metrics_path": endpoint.get("path", "/metrics"),
            "honor_labels": endpoint.get("honorLabels", False),
            "relabel_configs": [
                {_UPPER.sub(lambda found: f"_{found[0].lower()}", key): value for key, value in rule.items()}
                for rule in endpoint.get("relabelings", ())
            ],
            "static_configs": [{"targets": [each.address], "labels": dict(each.labels)} for each in targets],
        }
        for number, endpoint in enumerate(endpoints)
    ]


class Prometheus(Process):
    """The process; data and configuration are below `folder`."""

    def __init__(self, folder: Path, scrapes: Sequence[Json], rules: Sequence[Json] = ()) -> None:
        """`rules`: groups of rules."""
        self.port = free_ports(1)[0]
        settings: Json = {
            "global": {"scrape_interval": _EVERY, "scrape_timeout": _EVERY, "evaluation_interval": _EVERY},
            "scrape_configs": [*scrapes],
        }
        if rules:
            (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [*rules]}))
            settings["rule_files"] = ["rules.yaml"]
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))
        words = [f"--web.listen-address={LOOPBACK}:{self.port}", "--storage.tsdb.path=data", "--log.level=warn"]
        command = [str(prometheus_programs().prometheus), "--config.file=prometheus.yaml", *words]
        super().__init__(command, log=folder / "prometheus.log", cwd=folder)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def ready(self) -> bool:
        """Whether it answers queries."""
        try:
            return urllib3.request("GET", f"{self.url}/-/ready", timeout=5, retries=False).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def query(self, expression: str) -> list[Json]:
        """The samples of an instant query; ValueError with the reason for one that Prometheus rejects."""
        found = self._get("query", {"query": expression})
        return [dict(each) for each in found["result"]]

    def value(self, expression: str) -> float | None:
        """The value of a query with one sample or none."""
        samples = self.query(expression)
        return float(samples[0]["value"][1]) if samples else None

    def label_values(self, label: str, selector: str) -> list[str]:
        """The values of a label in series that match, as Grafana's `label_values` gives them."""
        return list(self._get(f"label/{label}/values", {"match[]": selector}))

    def alerts(self, namespace: str) -> dict[str, str]:
        """The state (pending or firing) of each active alert of a namespace by its name."""
        active = self._get("alerts", {})["alerts"]
        return {
            each["labels"]["alertname"]: each["state"]
            for each in active
            if each["labels"].get("namespace") == namespace
        }

    def down(self) -> list[str]:
        """What is wrong with the targets: one line for each that is not up."""
        targets = self._get("targets", {"state": "active"})["activeTargets"]
        return [f"{each['scrapeUrl']}: {each['lastError']}" for each in targets if each["health"] != "up"]

    def _get(self, path: str, fields: Mapping[str, str]) -> Any:
        answer = urllib3.request("GET", f"{self.url}/api/v1/{path}", fields=dict(fields), timeout=30)
        document = answer.json()
        if document["status"] != "success":
            raise ValueError(f"{fields}: {document['error']}")
        return document["data"]


@contextlib.contextmanager
def prometheus(folder: Path, scrapes: Sequence[Json], rules: Sequence[Json] = ()) -> Iterator[Prometheus]:
    """A Prometheus that is ready; it ends with the block."""
    with killed_at_end(Prometheus(folder, scrapes, rules)) as process:
        assert isinstance(process, Prometheus)
        wait_until(process.ready, "Prometheus", seconds=_START_SECONDS, unless=process.failed)
        yield process
