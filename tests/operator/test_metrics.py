"""The metrics of the operator are those of docs/metrics.md."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase

from s3sink_operator import metrics
from s3sink_operator.status.status_metrics import FAMILIES, PREFIX

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(s3sink_(?:operator|status)_\w+)` \| (\w+)[^|]* \| ([^|]*)\|", re.MULTILINE)
SUFFIXES = {"counter": "_total", "info": "_info"}


def reported() -> dict[str, tuple[str, list[str]]]:
    """Every metric with its kind and labels, by the name that Prometheus sees."""
    found = {}
    for each in vars(metrics).values():
        if isinstance(each, MetricWrapperBase):
            (family,) = each.describe()
            labels = list(each._labelnames) or [label for sample in family.samples for label in sample.labels]
            found[family.name + SUFFIXES.get(family.type, "")] = family.type, labels
    labels = ["version", "python_version"]
    found["s3sink_operator_build_info"] = "gauge", labels
    of_sinks = {PREFIX + name: ("gauge", ["namespace", "sink", *labels]) for name, (_, labels) in FAMILIES.items()}
    return found | of_sinks


def test_the_page_names_every_metric_of_the_operator_with_its_kind_and_labels() -> None:
    rows = ROW.findall(PAGE.read_text())
    assert {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels in rows} == reported()
