"""kubectl without a program and an API server: it reads and annotates the sink of a cluster in memory."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

from s3sink_operator.kubectl.client import RESOURCE, Kubectl, KubectlError
from s3sink_operator.types import Json
from tests.operator.fake_cluster import Cluster


@dataclass(frozen=True)
class FakeKubectl(Kubectl):
    """kubectl for one sink. `calls`: the words of `show`, and the paths of `raw`. `report`: what `raw` returns, or the
    error that it raises."""

    program: str = "kubectl"
    cluster: Cluster = field(default_factory=Cluster)
    calls: list[tuple[str, ...]] = field(default_factory=list)
    report: str | KubectlError = ""
    exit_code: int = 0

    def get(self, kind: str, name: str) -> Json:
        if (kind, name) != (RESOURCE, self.cluster.name):
            raise KubectlError("NotFound", f'{kind} "{name}" not found')
        return copy.deepcopy(self.cluster.sink)

    def find(self, kind: str, name: str) -> Json | None:
        assert kind == "pods"
        return self.cluster.get("Pod", name)

    def sinks(self, *, all_namespaces: bool, selector: str | None) -> list[Json]:
        return [self.cluster.sink] if all_namespaces or selector is None else []

    def raw(self, path: str) -> str:
        self.calls.append((path,))
        if isinstance(self.report, KubectlError):
            raise self.report
        return self.report

    def annotate(self, sink: str, annotations: Mapping[str, str | None]) -> Json:
        found = self.get(RESOURCE, sink)["metadata"].get("annotations", {}) | annotations
        kept = {name: value for name, value in found.items() if value is not None}
        self.cluster.sink["metadata"]["annotations"] = kept
        return self.get(RESOURCE, sink)

    def show(self, *words: str) -> int:
        self.calls.append(words)
        return self.exit_code

    def namespace(self) -> str:
        return "default"


def fake(cluster: Cluster) -> FakeKubectl:
    """kubectl for the sink of this cluster."""
    return FakeKubectl(cluster=cluster)
