"""A real Kubernetes of one node: the control plane on the machine, and in kernel namespaces containerd, kubelet,
kube-proxy and CoreDNS, so that pods run, reach each other, services by name, and servers of the machine at `host`.

`python -m devtools.kube.node up` leaves one running with the project's images in it and says where its kubeconfig is;
`load` loads rebuilt images, `down` ends it, `status` shows its state.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from devtools.images import TARGETS, Image, built
from devtools.kube import host_packages
from devtools.kube.build import Programs, kubernetes_programs
from devtools.kube.client import Json
from devtools.kube.containerd import Containerd, image_store
from devtools.kube.control_plane import CONTROLLERS, ControlPlane, write_kubeconfig
from devtools.kube.node_namespaces import NodeNamespaces, node_namespaces
from devtools.processes import Process, ServerFailedError, in_session, wait_until
from sink_job.engine.cache import cache_dir

NODE = "node-1"
_NODE_CONTROLLERS = (
    *CONTROLLERS,
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "job-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "taint-eviction-controller",
)
_READY_SECONDS = 90
_FIRST_SECONDS = 1800
_DOMAIN = "cluster.local"


class NodeCluster(ControlPlane):
    """A control plane whose pods run, in kernel `namespaces`. `store` has images; `pause` holds pods together.

    `host` is the address by which pods reach what listens on this machine, `images` are there without a registry.
    """

    def __init__(
        self,
        folder: Path,
        namespaces: NodeNamespaces,
        store: Path,
        *,
        pause: Image,
        images: Sequence[Image] = (),
        crds: Sequence[Json] = (),
    ) -> None:
        super().__init__(folder, crds=crds, controllers=_NODE_CONTROLLERS, address=namespaces.addresses.host)
        self.namespaces = namespaces
        self.images = (pause, *images)
        self.containerd = Containerd(namespaces, folder, store, pause=pause.name)
        self._options = self._api_server_options()

    @property
    def host(self) -> str:
        """This machine, as pods reach it."""
        return self.namespaces.addresses.host

    @property
    def programs(self) -> Programs:
        """Kubernetes' own programs, kubectl among them."""
        return kubernetes_programs()

    def start(self) -> None:
        """Starts all of it and returns when the node takes pods; `ServerFailedError` otherwise."""
        try:
            self.containerd.prepare(self.images)
            super().start()
            self._start_node()
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        super().kill()
        self.containerd.kill()

    def load(self, images: Sequence[Image]) -> None:
        """Brings images into the running node; they may be asked for at once."""
        self.containerd.load(images)

    def start_kubelet(self) -> None:
        """Starts kubelet where it does not run; the containers that run are its own again."""
        program = self.programs.component("kubelet")
        command = self.namespaces.inside(
            program,
            f"--config={self._write_kubelet_config()}",
            f"--kubeconfig={self._kubeconfig_of('kubelet', f'system:node:{NODE}', 'system:nodes')}",
            f"--hostname-override={NODE}",
            f"--node-ip={self.namespaces.addresses.node}",
            f"--root-dir={self.folder() / 'kubelet'}",
        )
        self._run("kubelet", command)

    def stop_kubelet(self) -> None:
        """Ends kubelet as a node does that falls silent: its containers run on."""
        self.processes.pop("kubelet").kill()

    def processes_of(self, pod: Json) -> list[int]:
        """The processes of the first container of a running pod, by the ids that this machine gives them."""
        group = self.namespaces.group_of(_container_id(pod))
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]

    def memory_limit_of(self, pod: Json) -> int:
        """What the kernel lets the first container of a running pod have, in bytes."""
        group = self.namespaces.group_of(_container_id(pod))
        files = [group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()]
        return int(files[0].read_text())

    def _start_node(self) -> None:
        scheduler = self._kubeconfig_of("scheduler", "system:kube-scheduler")
        words = [f"--kubeconfig={scheduler}", "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0"]
        self._run("kube-scheduler", [self.programs.component("kube-scheduler"), *words])
        self.containerd.start()
        self._write_network()
        self.start_kubelet()
        self._start_dns()
        self._start_proxy()
        self._wait_node()

    def _wait_node(self) -> None:
        kube = self.client()

        def is_ready() -> bool:
            node = kube.find("Node", NODE) or {}
            conditions = node.get("status", {}).get("conditions") or []
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

        wait_until(is_ready, "node", seconds=_READY_SECONDS, unless=self.processes["kubelet"].failed)

    def _start_dns(self) -> None:
        """CoreDNS on the node's address: pods ask there, services and headless names are all it knows."""
        corefile = self.folder() / "Corefile"
        kubeconfig = self.kubeconfig()
        corefile.write_text(
            f".:53 {{\n bind {self.namespaces.addresses.node}\n errors\n"
            f" kubernetes {_DOMAIN} {{\n  kubeconfig {kubeconfig}\n  ttl 0\n }}\n}}\n"
        )
        self._run("coredns", self.namespaces.inside(self.programs.component("coredns"), "-conf", corefile))

    def _start_proxy(self) -> None:
        """What makes addresses of services lead to pods."""
        words = [
            f"--kubeconfig={self._kubeconfig_of('proxy', 'system:kube-proxy')}",
            f"--hostname-override={NODE}",
            "--proxy-mode=nftables",
            f"--cluster-cidr={self.namespaces.addresses.pods}",
            f"--bind-address={self.namespaces.addresses.node}",
            "--healthz-bind-address=127.0.0.1",
            "--metrics-bind-address=127.0.0.1",
            # Limits of the whole machine, which are not ours to set.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ]
        self._run("kube-proxy", self.namespaces.inside(self.programs.component("kube-proxy"), *words))

    def _api_server_options(self) -> list[str]:
        client = self._authority.client("kube-apiserver-kubelet-client", ["system:masters"])
        return [
            "--authorization-mode=Node",
            "--enable-admission-plugins=NodeRestriction",
            f"--kubelet-client-certificate={client.certificate}",
            f"--kubelet-client-key={client.key}",
            f"--kubelet-certificate-authority={self._authority.certificate}",
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def _kubeconfig_of(self, name: str, user: str, *groups: str) -> Path:
        path = self.folder() / f"{name}.kubeconfig"
        write_kubeconfig(path, self.user(user, groups))
        return path

    def _write_network(self) -> None:
        """Each pod has a cable of its own to the node, so that all it sends is routed and services work everywhere."""
        ranges = [[{"subnet": self.namespaces.addresses.pods}]]
        addresses = {"type": "host-local", "dataDir": str(self.folder() / "addresses"), "ranges": ranges}
        plugin = {"type": "ptp", "ipMasq": False, "ipam": addresses | {"routes": [{"dst": "0.0.0.0/0"}]}}
        network: Json = {"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}
        (self.folder() / "cni").mkdir(exist_ok=True)
        (self.folder() / "cni" / "10-pods.conflist").write_text(json.dumps(network))

    def _write_kubelet_config(self) -> Path:
        folder = self.folder()
        resolver = folder / "resolv.conf"
        resolver.write_text("")
        tls = self._authority.server(NODE, self.namespaces.addresses.node)
        # The kubelet counts the page cache of other programs as used memory, and would evict pods because of it.
        signals = [f"{of}.{what}" for of in ("nodefs", "imagefs") for what in ("available", "inodesFree")]
        config: Json = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.namespaces.addresses.node,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self._authority.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(tls.certificate),
            "tlsPrivateKeyFile": str(tls.key),
            "containerRuntimeEndpoint": f"unix://{self.containerd.socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.namespaces.cgroup,
            "failCgroupV1": False,
            "failSwapOn": False,
            "resolvConf": str(resolver),
            "clusterDNS": [self.namespaces.addresses.node],
            "clusterDomain": _DOMAIN,
            "podLogsDir": str(folder / "pod-logs"),
            "volumePluginDir": str(folder / "volume-plugins"),
            "makeIPTablesUtilChains": False,
            "healthzBindAddress": "127.0.0.1",
            # Images are the cache's: never thrown away, whatever the disk holds.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": dict.fromkeys(["memory.available", *signals], "0%"),
            "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "5s",  # how soon a changed ConfigMap reaches a pod
            "serializeImagePulls": False,
            "registryPullQPS": 0,
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
        }
        path = folder / "kubelet.yaml"
        path.write_text(yaml.safe_dump(config))
        return path


def _container_id(pod: Json) -> str:
    return str(pod["status"]["containerStatuses"][0]["containerID"]).rpartition("/")[2]


def reason_against() -> str | None:
    """Why no node can run on this machine, in a sentence that says what to do; None where one can."""
    return host_packages.Machine.here().reason_against()


@contextlib.contextmanager
def node_cluster(
    images: Sequence[Image] = (), *, crds: Sequence[Json] = (), folder: Path | None = None
) -> Iterator[NodeCluster]:
    """A running cluster of one node with `images` in it; at the end nothing of it is left but the images."""
    host_packages.require()
    (pause,) = built("pause")
    with contextlib.ExitStack() as stack:
        if folder is None:
            temporary = tempfile.TemporaryDirectory(prefix="s3sink-node-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(temporary))
        store = stack.enter_context(image_store())
        inside = stack.enter_context(node_namespaces(folder))
        yield stack.enter_context(NodeCluster(folder, inside, store, pause=pause, images=images, crds=crds))


@dataclass(frozen=True)
class Left:
    """A cluster that `up` has left running, as its own process has written it down."""

    pid: int
    kubeconfig: str
    host: str
    images: Sequence[str]

    @classmethod
    def now(cls) -> Left | None:
        """The one that runs; None where none does."""
        try:
            found = cls(**json.loads(_left_at().read_text()))
        except (FileNotFoundError, ValueError):
            return None
        return found if in_session(found.pid) else None


def _left_at() -> Path:
    return cache_dir() / "kube" / "node.json"


def _serve() -> None:
    """The process behind `up`: a cluster that lasts until SIGTERM, or loads the images again at SIGHUP."""
    stop, load = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: load.set())
    images = built(*TARGETS)
    with node_cluster(images) as cluster:
        kubeconfig = cluster.kubeconfig()
        while not stop.is_set():
            left = Left(os.getpid(), str(kubeconfig), cluster.host, [image.name for image in images])
            new = _left_at().with_suffix(".new")
            new.write_text(json.dumps(asdict(left)))
            new.replace(_left_at())
            while not stop.is_set() and not load.is_set():
                stop.wait(0.2)
            if load.is_set():
                load.clear()
                images = built(*TARGETS)
                cluster.load(images)
    _left_at().unlink(missing_ok=True)


def _up() -> None:
    if Left.now() is None:
        log = cache_dir() / "kube" / "node.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        process = Process([sys.executable, "-m", "devtools.kube.node", "serve"], log=log, with_parent=False)
        wait_until(lambda: Left.now() is not None, "node", seconds=_FIRST_SECONDS, unless=process.failed)
    _status()


def _load() -> None:
    """Builds images of the code as it is now and brings them into the node that runs."""
    left = _left()
    images = built(*TARGETS)
    os.kill(left.pid, signal.SIGHUP)
    expected = [image.name for image in images]
    wait_until(lambda: list(_left().images) == expected, "images in the node", seconds=_FIRST_SECONDS)
    _status()


def _down() -> None:
    left = Left.now()
    if left is None:
        return print("no node runs")
    os.kill(left.pid, signal.SIGTERM)
    wait_until(lambda: not in_session(left.pid), "node gone", seconds=60)
    return None


def _status() -> None:
    left = _left()
    print(f"export KUBECONFIG={left.kubeconfig}")
    print(f"# kubectl and helm: {kubernetes_programs().folder}")
    print(f"# this machine, as pods reach it: {left.host}")
    for image in left.images:
        print(f"# image {image}")


def _left() -> Left:
    left = Left.now()
    if left is None:
        sys.exit("node: none runs; `python -m devtools.kube.node up` starts one")
    return left


def main() -> None:
    """`python -m devtools.kube.node up|load|status|down`."""
    commands = {"up": _up, "load": _load, "status": _status, "down": _down, "serve": _serve}
    chosen = commands.get(sys.argv[1] if len(sys.argv) == 2 else "")
    if not chosen:
        sys.exit("usage: python -m devtools.kube.node up|load|status|down")
    try:
        chosen()
    except ServerFailedError as error:
        sys.exit(f"node: {error}")


if __name__ == "__main__":
    main()
