"""The metrics of the operator are those of docs/metrics.md."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase

from s3sink_operator import metrics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(s3sink_operator_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)


def reported() -> dict[str, tuple[str, list[str]]]:
    """Every metric with its kind and labels, by the name that Prometheus sees."""
    found = {}
    for each in vars(metrics).values():
        if isinstance(each, MetricWrapperBase):
            (family,) = each.describe()
            name = family.name + ("_total" if family.type == "counter" else "")
            found[name] = family.type, list(each._labelnames)
    return found


def test_the_page_names_every_metric_of_the_operator_with_its_kind_and_labels() -> None:
    rows = ROW.findall(PAGE.read_text())
    assert {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels in rows} == reported()
