"""Kubernetes' own programs, built once from pinned Go modules into the project's cache.

`src/` holds a small Go program that is etcd and every Kubernetes component by the name it is called with; go.mod and
go.sum beside it pin all that goes into it. A folder of the cache belongs to one state of these sources and one version
of Go. What the user has comes first: `KUBEBUILDER_ASSETS` (a folder with etcd and kube-apiserver), which is what the
usual tools for testing operators set.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devtools.go_tool import build_go, building, go_version, locked
from devtools.processes import ServerFailedError
from sink_job.engine.cache import cache_dir

KUBECONFORM_MODULE = "github.com/yannh/kubeconform/cmd/kubeconform"
KUBECONFORM_VERSION = "v0.8.0"
COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
    "coredns",
)
_SOURCES = Path(__file__).parent / "src"
_SOURCE_FILES = ("main.go", "go.mod", "go.sum")
_MULTI_CALL = "kubeall"


@dataclass(frozen=True)
class Programs:
    """A folder of programs; those that are not there (`KUBEBUILDER_ASSETS` has no controller manager) are None."""

    folder: Path

    @property
    def etcd(self) -> Path:
        return self.folder / "etcd"

    @property
    def api_server(self) -> Path:
        return self.folder / "kube-apiserver"

    @property
    def controller_manager(self) -> Path | None:
        return self._if_there("kube-controller-manager")

    @property
    def kubectl(self) -> Path | None:
        return self._if_there("kubectl")

    def component(self, name: str) -> Path:
        """Any of `COMPONENTS`; `ServerFailedError` where the folder lacks it."""
        if program := self._if_there(name):
            return program
        raise ServerFailedError(f"{self.folder} has no {name}")

    def _if_there(self, name: str) -> Path | None:
        program = self.folder / name
        return program if program.exists() else None


def control_plane_programs() -> Programs:
    """etcd and the API server at least: of `KUBEBUILDER_ASSETS`, else of the cache, else built now.

    Raises `ServerFailedError` when `KUBEBUILDER_ASSETS` lacks one of them, and where building is impossible.
    """
    if not (given := os.environ.get("KUBEBUILDER_ASSETS")):
        return kubernetes_programs()
    programs = Programs(Path(given))
    for program in (programs.etcd, programs.api_server):
        if not program.exists():
            raise ServerFailedError(f"KUBEBUILDER_ASSETS={given} has no {program.name}")
    return programs


def kubernetes_programs() -> Programs:
    """All of `COMPONENTS`, of the cache or built now; the first time takes five to ten minutes on two cores.

    helm comes with them: of the same sources it takes some seconds more, alone minutes.
    """
    folder = _folder()
    with locked(folder):
        if not (folder / _MULTI_CALL).exists():
            _build_here(folder, {_MULTI_CALL: _kubernetes_package(), "helm": _helm_package()})
        for name in COMPONENTS:
            if not (folder / name).exists():
                (folder / name).symlink_to(_MULTI_CALL)
    return Programs(folder)


def helm_program() -> Path:
    """helm, of the user's PATH, of the cache, or built now with the versions that the rest is pinned to."""
    if given := shutil.which("helm"):
        return Path(given)
    folder = _folder()
    with locked(folder):
        if not (folder / "helm").exists():
            _build_here(folder, {"helm": _helm_package()})
    return folder / "helm"


def kubeconform_program() -> Path:
    """kubeconform, of the user's PATH, of the cache, or built now; of its own module, so it pins nothing else."""
    if given := shutil.which("kubeconform"):
        return Path(given)
    program = cache_dir() / "kube" / f"kubeconform-{KUBECONFORM_VERSION}"
    with locked(program.parent):
        if not program.exists():
            package = f"{KUBECONFORM_MODULE}@{KUBECONFORM_VERSION}"
            with building([program]) as work:
                build_go("install", package, "-ldflags=-s -w", work=work, cwd=work, env={"GOBIN": str(work)})
                (work / "kubeconform").rename(program)
    return program


def pinned_version(module: str) -> str:
    """The version of `module` that src/go.mod asks for."""
    found = re.search(rf"^\s*{re.escape(module)} (v\S+)", (_SOURCES / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise ValueError(f"src/go.mod does not name {module}")
    return found.group(1)


def _folder() -> Path:
    """The cache's folder for these sources and this Go; ones of earlier sources stay until .cache/kube is removed."""
    digest = hashlib.sha256()
    for name in _SOURCE_FILES:
        digest.update((_SOURCES / name).read_bytes())
    return (
        cache_dir() / "kube" / f"{pinned_version('k8s.io/kubernetes')}-{digest.hexdigest()[:12]}-{go_version(_SOURCES)}"
    )


@dataclass(frozen=True)
class _Package:
    path: str
    linker_flags: str


def _build_here(folder: Path, packages: Mapping[str, _Package]) -> None:
    """Builds programs (name to package) of the sources' module into `folder`."""
    with building([folder / name for name in packages]) as work:
        for name, package in packages.items():
            flags = f"-ldflags={package.linker_flags}"
            build_go("build", package.path, flags, output=work / name, work=work, cwd=_SOURCES)
        for name in reversed([*packages]):
            (work / name).rename(folder / name)


def _kubernetes_package() -> _Package:
    """Kubernetes reads its version from variables that its own build sets; without them it is v0.0.0."""
    version = pinned_version("k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    flags = [f"-X {package}.{key}={value}" for package in packages for key, value in values.items()]
    return _Package(".", " ".join(["-s -w", *flags]))


def _helm_package() -> _Package:
    """helm's own version, and the Kubernetes version that `helm template` renders for."""
    major, minor, _ = pinned_version("k8s.io/kubernetes").removeprefix("v").split(".", 2)
    values = {
        "internal/version.version": pinned_version("helm.sh/helm/v3"),
        "pkg/chartutil.k8sVersionMajor": major,
        "pkg/chartutil.k8sVersionMinor": minor,
    }
    flags = [f"-X helm.sh/helm/v3/{name}={value}" for name, value in values.items()]
    return _Package("helm.sh/helm/v3/cmd/helm", " ".join(["-s -w", *flags]))


def main() -> None:
    """`python -m devtools.kube.build [helm] [kubeconform]`: builds ahead what tests would build at their first run."""
    makers = {"helm": helm_program, "kubeconform": kubeconform_program}
    unknown = set(sys.argv[1:]) - makers.keys()
    if unknown:
        sys.exit(f"usage: python -m devtools.kube.build [{'] ['.join(makers)}]")
    try:
        print(control_plane_programs().folder)
        for name in sys.argv[1:]:
            print(makers[name]())
    except ServerFailedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
