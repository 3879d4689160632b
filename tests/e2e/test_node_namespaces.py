"""Where a node lives, without the node: what it is given, what is left of it, and what a machine lacks for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devtools.kube.host_packages import Machine
from devtools.kube.node_namespaces import Addresses, NodeNamespaces, node_namespaces, sweep_cgroups
from devtools.processes import Process, wait_until

pytestmark = pytest.mark.e2e

needs_root = pytest.mark.skipif(bool(reason := Machine.here().reason_against()), reason=reason or "")
_KILLED = """
import sys, time
from pathlib import Path
from devtools.kube.node_namespaces import NodeNamespaces
namespaces = NodeNamespaces(Path(sys.argv[1]))
namespaces.start()
namespaces.run("mount", "-t", "tmpfs", "tmpfs", "/mnt")
print(namespaces.addresses.number, flush=True)
time.sleep(600)
"""


def test_no_two_nodes_of_a_machine_share_an_address() -> None:
    found = [Addresses(number) for number in range(64)]
    taken = [address for each in found for address in (each.link, each.host, each.node, each.pods)]
    assert len(taken) == len(set(taken))
    assert (found[1].host, found[1].node, found[1].pods) == ("10.213.0.5", "10.213.0.6", "10.214.1.0/24")


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (Machine(is_linux_root=False, has_apt=True, missing=[]), "needs root on Linux"),
        (Machine(is_linux_root=True, has_apt=False, missing=["containerd", "runc"]), "containerd, runc"),
    ],
)
def test_a_machine_without_support_for_a_node_gets_the_missing_requirements(machine: Machine, said: str) -> None:
    assert said in str(machine.reason_against())


def test_what_apt_can_install_is_no_reason_against_a_node() -> None:
    assert Machine(is_linux_root=True, has_apt=True, missing=["containerd"]).reason_against() is None


@needs_root
def test_two_nodes_run_side_by_side_and_each_reaches_the_machine(tmp_path: Path) -> None:
    with node_namespaces(_folder(tmp_path, "one")) as one, node_namespaces(_folder(tmp_path, "other")) as other:
        assert one.addresses != other.addresses
        for each in (one, other):
            assert each.addresses.host in each.run("ip", "route")
        assert not Path("/run/of-a-node").exists()
        one.run("touch", "/run/of-a-node")
        assert not Path("/run/of-a-node").exists()


@needs_root
def test_kernel_settings_of_the_machine_stay_as_they_are(tmp_path: Path) -> None:
    before = Path("/proc/sys/vm/overcommit_memory").read_text()
    with node_namespaces(tmp_path) as inside:
        assert inside.run("cat", "/proc/sys/vm/overcommit_memory").strip() == "1"
        inside.run("sh", "-c", "echo 2 > /proc/sys/vm/overcommit_memory")
        assert Path("/proc/sys/vm/overcommit_memory").read_text() == before


@needs_root
def test_a_killed_run_leaves_neither_process_nor_mount_nor_address(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    process = Process([sys.executable, "-c", _KILLED, tmp_path], log=log, cwd=Path.cwd())
    try:
        wait_until(lambda: log.read_text().strip().isdigit(), "namespaces", seconds=60, unless=process.failed)
        addresses = Addresses(int(log.read_text()))
        assert _links(addresses.link)
        process.kill_alone()
        wait_until(lambda: not _links(addresses.link), "its network gone", seconds=60)
    finally:
        process.kill()
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert addresses.pods not in subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    sweep_cgroups()
    assert not [each for each in Path("/sys/fs/cgroup").glob(f"*/{addresses.link}") if each.is_dir()]


@needs_root
def test_what_runs_in_the_namespaces_ends_with_them(tmp_path: Path) -> None:
    inside = NodeNamespaces(tmp_path)
    inside.start()
    sleeper = Process(inside.inside("sleep", "600"), log=tmp_path / "sleep.log")
    inside.kill()
    assert sleeper.wait(60) != 0


def _links(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder
