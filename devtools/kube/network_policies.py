"""Enforces the NetworkPolicies of a node, as a CNI plug-in with that ability does: kube-router, in its namespaces.

The node's own plug-in (ptp) ignores NetworkPolicies. kube-router makes rules of iptables from them for the traffic of
pods. Ports are compared after the translation of service addresses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from devtools.kube import host_packages
from devtools.kube.control_plane import SERVICES, write_kubeconfig
from devtools.kube.node import NODE, NodeCluster
from devtools.kube_router import kube_router
from devtools.processes import Process

PROGRAMS = {"iptables": "iptables", "iptables-save": "iptables", "iptables-restore": "iptables", "ipset": "ipset"}
"""Programs that kube-router runs, with the Debian packages that contain them."""


@contextlib.contextmanager
def enforced(cluster: NodeCluster) -> Iterator[Process]:
    """NetworkPolicies have an effect within this block, a second after they or their pods change.

    Raises `ServerFailedError` where kube-router cannot be had. It fails the block if it ends before.
    """
    host_packages.require(host_packages.Machine.here(PROGRAMS, cni=False))
    kubeconfig = cluster.folder() / "kube-router.kubeconfig"
    write_kubeconfig(kubeconfig, cluster.user("kube-router", ["system:masters"]))
    command = cluster.namespaces.inside(
        kube_router(),
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NODE}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        f"--service-cluster-ip-range={SERVICES}",
        "--enable-ipv6=false",
        "--health-port=0",
        "--metrics-port=0",
    )
    process = Process(command, log=cluster.folder() / "kube-router.log", cwd=cluster.folder())
    try:
        yield process
    finally:
        process.kill()
        # kube-proxy has a table of its own: these are the rules of kube-router alone.
        for words in (["--flush"], ["--delete-chain"]):
            cluster.namespaces.run(host_packages.find_program("iptables") or "iptables", *words)
