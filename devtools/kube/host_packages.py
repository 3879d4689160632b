"""The programs that a node needs of this machine, and how they are had where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools.processes import ServerFailedError

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
# The plug-ins that the node's network is made of.
CNI_PLUGINS = ("ptp", "host-local", "loopback")
# By the name of a program: the Debian package that brings it.
NODE_PROGRAMS: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
_CNI_PACKAGE = "containernetworking-plugins"


@dataclass(frozen=True)
class Machine:
    """What counts of a machine: whether we are root on Linux, whether apt is there, and which packages are missing."""

    is_linux_root: bool
    has_apt: bool
    missing: Sequence[str]

    @classmethod
    def here(cls, programs: Mapping[str, str] = NODE_PROGRAMS, *, cni: bool = True) -> Machine:
        """This machine, as to `programs` (name to Debian package) and the CNI plug-ins."""
        missing = {package for program, package in programs.items() if not find_program(program)}
        if cni and not cni_folder():
            missing.add(_CNI_PACKAGE)
        is_root = sys.platform == "linux" and os.geteuid() == 0
        return cls(is_root, shutil.which("apt-get") is not None, sorted(missing))

    def reason_against(self) -> str | None:
        """Why no node can run here, in a sentence that says what to do; None where it can, or apt can see to it."""
        if not self.is_linux_root:
            return "a node of Kubernetes needs root on Linux; or name a cluster: S3SINK_TEST_CLUSTER=1 and KUBECONFIG"
        if self.missing and not self.has_apt:
            return f"install what these packages of Debian bring: {', '.join(self.missing)}"
        return None


def require(machine: Machine | None = None) -> None:
    """Sees to it that all is there: by apt where it can be. Raises `ServerFailedError` with what is missing."""
    found = machine or Machine.here()
    if reason := found.reason_against():
        raise ServerFailedError(reason)
    if found.missing:
        _install(found.missing)


def find_program(name: str) -> str | None:
    """A program of PATH or of the folders that root's PATH has and others' may lack."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def cni_folder() -> Path | None:
    """Where all of `CNI_PLUGINS` are."""
    for folder in CNI_FOLDERS:
        if all((folder / name).exists() for name in CNI_PLUGINS):
            return folder
    return None


def _install(packages: Sequence[str]) -> None:
    print(f"installing by apt-get: {' '.join(packages)} ...", file=sys.stderr, flush=True)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerFailedError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
