"""The cluster of `make demo-cluster`: one of your own, or a node that the demo sets up and takes down again."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from demo.console import Show
from devtools.images import TARGETS, built
from devtools.kube.build import helm_program, kubernetes_programs
from devtools.kube.node import node_cluster, reason_against
from devtools.processes import ServerFailedError

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "s3sink-operator"


@dataclass(frozen=True)
class Given:
    """A cluster of the user's: a context of the kubeconfig, this machine's address as pods reach it, and two images."""

    context: str
    host: str
    operator_image: str
    job_image: str


@dataclass(frozen=True)
class Kube:
    """A cluster as its users reach it: by kubectl and helm. `host`: this machine, as pods reach it."""

    kubectl: Path
    flags: tuple[str, ...]
    environment: dict[str, str]
    host: str
    operator_image: str
    job_image: str

    def run(self, *words: str | Path, given: str | None = None) -> str:
        """kubectl to its end, with `given` as its input; gives its output. Raises ServerFailedError."""
        return self._run([self.kubectl, *self.flags, *words], given)

    def plugin(self, *words: str) -> str:
        """`kubectl s3sink`, found as a plug-in: one takes its flags behind its name."""
        return self._run([self.kubectl, "s3sink", *words, *self.flags])

    def helm(self, *words: str | Path) -> str:
        """helm to its end; gives its output. Raises ServerFailedError."""
        flags = [word.replace("--context", "--kube-context") for word in self.flags]
        return self._run([helm_program(), *words, *flags])

    def _run(self, command: list[str | Path], given: str | None = None) -> str:
        done = subprocess.run(
            [*map(str, command)], env=self.environment, input=given, capture_output=True, text=True, check=False
        )
        if done.returncode:
            words = " ".join(map(str, [Path(command[0]).name, *command[1:]]))
            raise ServerFailedError(f"{words} ended with {done.returncode}:\n{done.stderr.strip() or done.stdout}")
        return done.stdout


@contextlib.contextmanager
def kubernetes(show: Show, given: Given | None) -> Iterator[Kube]:
    """The cluster that is given, or one of the demo's own for as long as the block lasts."""
    if given is not None:
        yield _given(given)
        return
    if reason := reason_against():
        raise ServerFailedError(
            f"{reason}\nOr bring a cluster of your own: make demo-cluster ARGS='--context NAME --host ADDRESS "
            "--operator-image IMAGE --job-image IMAGE'"
        )
    kubernetes_programs()
    show.say("two images, built from the Dockerfile")
    images = built(*TARGETS)
    with show.spinner("starting the node"):
        stack = contextlib.ExitStack()
        cluster = stack.enter_context(node_cluster(images))
    with stack:
        programs = kubernetes_programs()
        if programs.kubectl is None:
            raise ServerFailedError("no kubectl was built")
        operator, job = (image.name for image in images)
        environment = _environment(programs.kubectl) | {"KUBECONFIG": str(cluster.kubeconfig())}
        yield Kube(programs.kubectl, (), environment, cluster.host, operator, job)


def _given(given: Given) -> Kube:
    found = shutil.which("kubectl")
    if found is None:
        raise ServerFailedError("no kubectl on PATH")
    kubectl, flags = Path(found), ("--context", given.context)
    return Kube(kubectl, flags, _environment(kubectl), given.host, given.operator_image, given.job_image)


def _environment(kubectl: Path) -> dict[str, str]:
    """With this project's programs on PATH, so that kubectl finds its plug-in."""
    folders = [str(kubectl.parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {**os.environ, "PATH": os.pathsep.join(folders)}
