"""Where a node lives: mounts, processes and a network of its own, which the kernel clears away when the first of its
processes ends.

So a killed test run leaves no mount, shim, bridge, rule or address on the machine. A cable (veth) leads from the
machine (`host`, where API server, Kafka and S3 listen) to the node (`node`). Behind it lie the pods, which reach the
machine by that address and nothing beyond it: there is no forwarding.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devtools.kube.host_packages import find_program
from devtools.processes import Process, ServerFailedError, in_session, wait_until

_PREFIX = "s3sink"
_CABLES = ipaddress.IPv4Network("10.213.0.0/16")
_PODS = ipaddress.IPv4Network("10.214.0.0/16")
_MOST = 64
_CGROUPS = Path("/sys/fs/cgroup")
# The first process of a pid namespace inherits all orphans: ignoring their ends lets the kernel clear them away.
_INIT = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True: signal.pause()"
# What kubelet would set for the whole machine; it finds these values in files that lie over the real ones.
_KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
# Folders in which containerd, kubelet and CNI leave things under fixed names.
_OWN_FOLDERS = ("/run", "/var/log", "/var/lib/cni")


@dataclass(frozen=True)
class Addresses:
    """The addresses of the n-th node of a machine: both ends of its cable, and its pods."""

    number: int

    @property
    def link(self) -> str:
        """The name of the machine's end; the node's is eth0."""
        return f"{_PREFIX}{self.number}"

    @property
    def host(self) -> str:
        """The machine as its pods see it."""
        return self._cable(1)

    @property
    def node(self) -> str:
        return self._cable(2)

    @property
    def pods(self) -> str:
        """The pods' addresses, as a network."""
        return str(ipaddress.IPv4Network((int(_PODS.network_address) + 256 * self.number, 24)))

    def _cable(self, end: int) -> str:
        return str(_CABLES[4 * self.number + end])


class NodeNamespaces:
    """Namespaces with `addresses`, started by `start` and ended, with all that runs in them, by `kill`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Process | None = None
        self._init = 0
        self._addresses: Addresses | None = None

    @property
    def addresses(self) -> Addresses:
        if self._addresses is None:
            raise ServerFailedError("the namespaces of the node are not started: call start() first")
        return self._addresses

    @property
    def cgroup(self) -> str:
        """The control group in which the node's own stand."""
        return f"/{self.addresses.link}"

    def start(self) -> None:
        """Makes the namespaces and the network; `ServerFailedError` with the command that failed."""
        unshare = [_program("unshare"), "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        command = [*unshare, "--propagation", "private", sys.executable, "-S", "-c", _INIT]
        process = Process(command, log=self._folder / "namespaces.log", cwd=self._folder)
        self._process = process
        try:
            wait_until(self._is_up, "namespaces", seconds=60, unless=process.failed)
            self._connect()
            self._cover()
            _make_cgroup(self.cgroup)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Ends all that runs inside; the kernel takes away the rest. Control groups are removed."""
        if self._process:
            self._process.kill()
            self._process = None
        if self._addresses:
            _remove_cgroup(self.cgroup)

    def group_of(self, container: str) -> Path:
        """The folder of the control group, the one that limits memory, of a container by its id."""
        for root in (_CGROUPS / "memory", _CGROUPS):
            if found := next((root / self.cgroup.lstrip("/")).rglob(container), None):
                return found
        raise ServerFailedError(f"no control group of container {container}")

    def inside(self, *command: str | Path) -> list[str | Path]:
        """`command` as it is run inside."""
        words = [_program("nsenter"), "--target", str(self._init), "--mount", "--net", "--pid", "--wdns=/"]
        return [*words, *command]

    def run(self, *command: str | Path) -> str:
        """Runs a short command inside and gives its output; `ServerFailedError` when it fails."""
        return _run(*self.inside(*command))

    def _is_up(self) -> bool:
        """Whether the first process is there, by the name that it has only after `unshare` has done its part."""
        assert self._process
        for pid in in_session(self._process.pid):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if pid != self._process.pid and words[0] == sys.executable.encode():
                    self._init = pid
                    return True
        return False

    def _connect(self) -> None:
        self._addresses = addresses = self._cable()
        ip = _program("ip")
        _run(ip, "addr", "add", f"{addresses.host}/30", "dev", addresses.link)
        _run(ip, "link", "set", addresses.link, "up")
        for link in ("lo", "eth0"):
            self.run(ip, "link", "set", link, "up")
        self.run(ip, "addr", "add", f"{addresses.node}/30", "dev", "eth0")
        self.run(ip, "route", "add", "default", "via", addresses.host)
        _run(ip, "route", "add", addresses.pods, "via", addresses.node)
        self._write("/proc/sys/net/ipv4/ip_forward", "1")

    def _cable(self) -> Addresses:
        """The first free number; making the link is what reserves it."""
        taken = {route["dst"] for route in json.loads(_run(_program("ip"), "-json", "route"))}
        for number in range(_MOST):
            addresses = Addresses(number)
            if addresses.pods in taken:
                continue
            ends = ["add", addresses.link, "type", "veth", "peer", "name", "eth0", "netns", str(self._init)]
            if _succeeds(_program("ip"), "link", *ends):
                return addresses
        raise ServerFailedError(f"no free network for a node: {_MOST} links {_PREFIX}0 and on, or routes, are there")

    def _cover(self) -> None:
        """Lays folders and kernel settings of our own over those of the machine."""
        settings = self._folder / "sysctl"
        settings.mkdir()
        for name, value in _KERNEL_SETTINGS.items():
            ours = settings / name.replace("/", ".")
            ours.write_text(f"{value}\n")
            if Path("/proc/sys", name).exists():
                self.run("mount", "--bind", ours, f"/proc/sys/{name}")
        for name in _OWN_FOLDERS:
            Path(name).mkdir(exist_ok=True)
            self.run("mount", "-t", "tmpfs", "tmpfs", name)

    def _write(self, path: str, text: str) -> None:
        self.run("sh", "-c", 'printf %s "$2" > "$1"', "sh", path, text)


@contextlib.contextmanager
def node_namespaces(folder: Path) -> Iterator[NodeNamespaces]:
    """A started `NodeNamespaces`; control groups of killed runs are removed first."""
    sweep_cgroups()
    namespaces = NodeNamespaces(folder)
    try:
        namespaces.start()
        yield namespaces
    finally:
        namespaces.kill()


def sweep_cgroups() -> None:
    """Removes control groups of nodes whose cable is gone."""
    for folder in {each.name for root in _hierarchies() for each in root.glob(f"{_PREFIX}[0-9]*")}:
        if not Path("/sys/class/net", folder).exists():
            _remove_cgroup(f"/{folder}")


def _hierarchies() -> list[Path]:
    """The folders below which control groups are made: one for each controller, or the one of version 2."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [each for each in _CGROUPS.iterdir() if each.is_dir() and not each.is_symlink()] if _CGROUPS.exists() else []


def _make_cgroup(name: str) -> None:
    for root in _hierarchies():
        folder = root / name.lstrip("/")
        folder.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # A new group of version 1 has no processor until one is assigned.
            if (
                (folder / setting).exists()
                and (root / setting).exists()
                and not (folder / "cgroup.controllers").exists()
            ):
                (folder / setting).write_text((root / setting).read_text())


def _remove_cgroup(name: str) -> None:
    """Removes a group and those below; they are empty as soon as the kernel has done with the processes."""

    def gone() -> bool:
        left = [root / name.lstrip("/") for root in _hierarchies() if (root / name.lstrip("/")).exists()]
        for top in left:
            for folder in sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            with contextlib.suppress(OSError):
                top.rmdir()
        return not any(top.exists() for top in left)

    with contextlib.suppress(ServerFailedError):
        wait_until(gone, f"control group {name} gone", seconds=60)


def _program(name: str) -> str:
    found = find_program(name)
    if not found:
        raise ServerFailedError(f"no {name} on PATH")
    return found


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerFailedError(f"{' '.join(map(str, command))} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
