"""helm, and what it makes of the chart."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from devtools.kube.build import helm_program
from tools.chart import CHART

Json = dict[str, Any]
Helm = Callable[..., "subprocess.CompletedProcess[str]"]
Renderer = Callable[..., "Rendered"]
PROMETHEUS = ("--api-versions", "monitoring.coreos.com/v1")
MINIMAL, EVERYTHING = CHART / "ci" / "minimal.yaml", CHART / "ci" / "everything.yaml"


class Rendered(list[Json]):
    """The objects that a chart is rendered to."""

    def of(self, kind: str, name: str | None = None, namespace: str | None = None) -> list[Json]:
        return [
            each
            for each in self
            if each["kind"] == kind
            and name in (None, each["metadata"]["name"])
            and namespace in (None, each["metadata"].get("namespace"))
        ]

    def one(self, kind: str, name: str | None = None, namespace: str | None = None) -> Json:
        (found,) = self.of(kind, name, namespace)
        return found


def helm_in(home: Path) -> Helm:
    """Runs helm, the user's own if there is one, without the user's settings; returns its result.

    `home` is an empty folder for its own."""
    program = helm_program()
    folders = {f"HELM_{what}_HOME": str(home / what.lower()) for what in ("CACHE", "CONFIG", "DATA")}

    def run(*arguments: str | Path, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = folders | {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig or home / "none"),
        }
        return subprocess.run(
            [program, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
        )

    return run


def renderer(helm: Helm) -> Renderer:
    """Renders the chart as release `s3sink` of namespace `ops`, with a file of values and `--set`s.

    What is rendered is shared: tests change nothing in it.
    """

    @cache
    def render(values: Path = MINIMAL, *sets: str, arguments: Sequence[str] = PROMETHEUS) -> Rendered:
        flags = [word for each in sets for word in ("--set", each)]
        done = helm("template", "s3sink", CHART, "--namespace", "ops", "--values", values, *flags, *arguments)
        assert done.returncode == 0, done.stderr
        return Rendered(document for document in yaml.safe_load_all(done.stdout) if document)

    return render
