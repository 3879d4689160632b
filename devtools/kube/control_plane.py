"""A real Kubernetes control plane on the loopback address, without root: etcd, the API server, and those controllers
that tests of an operator lean on. No scheduler and no kubelet: `devtools.kube.fake_kubelet` plays them.

It is as strict as a cluster: RBAC, the default admission plug-ins (Pod Security, quotas and limits among them), service
accounts with tokens that the server signs. Who has a cluster of their own sets `S3SINK_TEST_CLUSTER=1` beside
`KUBECONFIG`; then that one is used, and nothing is started.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import kubernetes
import urllib3
import yaml

from devtools.certificates import Certificate
from devtools.kube.build import Programs, control_plane_programs
from devtools.kube.certificates import Authority, signing_key
from devtools.kube.client import Access, ApiError, Json, Kube
from devtools.processes import Process, ServerFailedError, free_ports, wait_until

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)
"""What of the controller manager runs: nothing that judges nodes or pods, which is the harness's part."""

LOOPBACK = "127.0.0.1"
SERVICES = "10.96.0.0/24"
_START_SECONDS = 60
_CRD = "CustomResourceDefinition"
_CRD_RETRY_SECONDS = 3.0


class Cluster(ABC):
    """A Kubernetes that tests may use, whoever runs it."""

    @property
    @abstractmethod
    def admin(self) -> Access:
        """Access as one who may do everything."""

    @property
    @abstractmethod
    def collects_garbage(self) -> bool:
        """Whether a garbage collector runs, which deletes what lost its owner."""

    @abstractmethod
    def folder(self) -> Path:
        """Where kubeconfig files are put."""

    def client(self, access: Access | None = None) -> Kube:
        """A client, as the administrator by default."""
        return Kube(access or self.admin)

    def service_account(self, namespace: str, name: str, *, seconds: int = 3600) -> Access:
        """Access by a token of an existing service account, made by the server as it makes those of pods."""
        request: Json = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = self.client().within(namespace).post("ServiceAccount", name, "token", request)
        return replace(self.admin, token=str(answer["status"]["token"]), certificate=None)

    def kubeconfig(
        self, access: Access | None = None, *, server: str | None = None, namespace: str = "default"
    ) -> Path:
        """A new kubeconfig file; `server` is another way to the same API server (a proxy's, plain http too).

        A proxy can pass on tokens, not client certificates.
        """
        path = self.folder() / f"kubeconfig-{secrets.token_hex(4)}"
        write_kubeconfig(path, access or self.admin, server=server, namespace=namespace)
        return path

    def install_crd(self, manifest: Json) -> None:
        """Creates or updates a CustomResourceDefinition and returns when its objects are served."""
        kube = self.client()
        kube.apply(manifest)
        name = manifest["metadata"]["name"]

        def is_established(crd: Json) -> bool:
            conditions = crd.get("status", {}).get("conditions") or []
            return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

        kube.wait(_CRD, name, is_established)

    def wait_crd_gone(self, name: str, *, seconds: float = 60) -> None:
        """Returns when a deleted CustomResourceDefinition is gone.

        The API server (1.34) deletes its objects first. If it cannot list them at once and meets a conflict when it
        retries, it tries again only after 5 minutes, or after a change: `crd_finalizer.go` of its sources drops the
        retry. So this changes an annotation until the definition is gone.

        Raises `ServerFailedError` after `seconds`.
        """
        kube = self.client()
        end = time.monotonic() + seconds
        for attempt in itertools.count(1):
            try:
                kube.patch(_CRD, name, {"metadata": {"annotations": {"tests.s3sink.io/attempt": str(attempt)}}})
                kube.wait_gone(_CRD, name, seconds=_CRD_RETRY_SECONDS)
                return
            except ApiError as error:
                if error.status != 404:
                    raise
                return
            except ServerFailedError:
                if time.monotonic() > end:
                    raise


class ControlPlane(Cluster):
    """A control plane over `folder`, started by `start` or as a context manager, ended by `kill`.

    `crds` are there before the controllers start: the garbage collector looks for new kinds only every 30 s.
    `address` is where the API server listens: pods reach no loopback address.
    """

    def __init__(
        self,
        folder: Path,
        *,
        crds: Sequence[Json] = (),
        controllers: Sequence[str] = CONTROLLERS,
        api_server_options: Sequence[str] = (),
        address: str = LOOPBACK,
    ) -> None:
        self._folder = folder
        self._address = address
        self._crds = crds
        self._controllers = controllers
        self._options = api_server_options
        self._programs: Programs | None = None
        self._admin_token = secrets.token_hex(16)
        self._authority = Authority(folder)
        self._signing_key, self._checking_key = signing_key(folder)
        self._etcd_port, self._peer_port, self._port = free_ports(3)
        self.processes: dict[str, Process] = {}

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://{self._address}:{self._port}"

    @property
    def admin(self) -> Access:
        return Access(self.server, self._authority.certificate, token=self._admin_token)

    @property
    def collects_garbage(self) -> bool:
        return "kube-controller-manager" in self.processes

    def folder(self) -> Path:
        return self._folder

    def user(self, name: str, groups: Sequence[str] = ()) -> Access:
        """Access as any user of any groups, by a client certificate; what it may do, RBAC says."""
        return Access(self.server, self._authority.certificate, certificate=self._authority.client(name, groups))

    def start(self) -> None:
        """Starts what is not running and returns when the API server is ready; `ServerFailedError` otherwise."""
        self._programs = control_plane_programs()
        try:
            self._run("etcd", self._etcd(self._programs.etcd))
            self._run("kube-apiserver", self._api_server(self._programs.api_server))
            self._wait_ready()
            for crd in self._crds:
                self.install_crd(crd)
            if self._controllers and (program := self._programs.controller_manager):
                self._run("kube-controller-manager", self._controller_manager(program))
        except BaseException:
            self.kill()
            raise

    def restart_api_server(self) -> None:
        """Kills the API server and restarts it with the same data and port: all connections break."""
        self.processes.pop("kube-apiserver").kill()
        if not self._programs:
            raise ServerFailedError("the control plane was never started")
        self._run("kube-apiserver", self._api_server(self._programs.api_server))
        self._wait_ready()

    def kill(self) -> None:
        """Ends all of it, now; the data is left in the folder."""
        for process in reversed(self.processes.values()):
            process.kill()
        self.processes.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _run(self, name: str, command: Sequence[str | Path]) -> None:
        if name not in self.processes:
            self.processes[name] = Process(command, log=self._folder / f"{name}.log", cwd=self._folder)

    def _wait_ready(self) -> None:
        kube = self.client()
        process = self.processes["kube-apiserver"]

        def is_ready() -> bool:
            try:
                kube.request("GET", "/readyz")
                # Defaults of the server's own start that the first objects lean on.
                return kube.find("Namespace", "default") is not None
            except (ApiError, urllib3.exceptions.HTTPError):
                return False

        wait_until(is_ready, "API server", seconds=_START_SECONDS, unless=process.failed)

    def _etcd(self, program: Path) -> list[str | Path]:
        clients, peers = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        return [
            program,
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self, program: Path) -> list[str | Path]:
        tokens = self._folder / "tokens.csv"
        tokens.write_text(f"{self._admin_token},admin,admin,system:masters\n")
        tokens.chmod(0o600)
        tls = self._authority.server("kube-apiserver", self._address)
        return [
            program,
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--bind-address={self._address}",
            f"--advertise-address={self._address}",
            # A loopback address is no endpoint for pods, and no pod asks for one there.
            f"--endpoint-reconciler-type={'none' if self._address == LOOPBACK else 'lease'}",
            f"--secure-port={self._port}",
            f"--tls-cert-file={tls.certificate}",
            f"--tls-private-key-file={tls.key}",
            f"--client-ca-file={self._authority.certificate}",
            f"--token-auth-file={tokens}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._checking_key}",
            f"--service-account-signing-key-file={self._signing_key}",
            f"--service-cluster-ip-range={SERVICES}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            *self._options,
        ]

    def _controller_manager(self, program: Path) -> list[str | Path]:
        path = self._folder / "controllers.kubeconfig"
        write_kubeconfig(path, self.user("system:kube-controller-manager"))
        return [
            program,
            f"--kubeconfig={path}",
            f"--controllers={','.join(self._controllers)}",
            f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self._authority.certificate}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            "--secure-port=0",
        ]


class ExistingCluster(Cluster):
    """The cluster that a kubeconfig's current context names, with whatever rights that user has."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        load: Callable[[str], kubernetes.client.ApiClient] = kubernetes.config.new_client_from_config
        configuration = load(str(kubeconfig)).configuration
        token = configuration.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
        certificate, key = configuration.cert_file, configuration.key_file
        self._folder = folder
        self._admin = Access(
            configuration.host,
            Path(configuration.ssl_ca_cert) if configuration.ssl_ca_cert else None,
            token=token.removeprefix("Bearer ") or None,
            certificate=Certificate(Path(certificate), Path(key)) if certificate and key else None,
        )

    @property
    def admin(self) -> Access:
        return self._admin

    @property
    def collects_garbage(self) -> bool:
        return True

    def folder(self) -> Path:
        return self._folder


def existing_kubeconfig() -> Path | None:
    """The kubeconfig of a cluster that tests may use; None unless `S3SINK_TEST_CLUSTER=1` is set.

    `KUBECONFIG` alone is no leave to put test objects into what may be anyone's production.
    """
    if os.environ.get("S3SINK_TEST_CLUSTER") != "1":
        return None
    if not (given := os.environ.get("KUBECONFIG")):
        raise ServerFailedError("S3SINK_TEST_CLUSTER=1 needs KUBECONFIG, which says where the cluster is")
    return Path(given)


@contextlib.contextmanager
def cluster(*, crds: Sequence[Json] = ()) -> Iterator[Cluster]:
    """The user's cluster if there is one, else a control plane of our own in a temporary folder; with `crds`."""
    with tempfile.TemporaryDirectory(prefix="s3sink-kube-", ignore_cleanup_errors=True) as name:
        if kubeconfig := existing_kubeconfig():
            existing = ExistingCluster(kubeconfig, Path(name))
            for crd in crds:
                existing.install_crd(crd)
            yield existing
            return
        with ControlPlane(Path(name), crds=crds) as control_plane:
            yield control_plane


def write_kubeconfig(path: Path, access: Access, *, server: str | None = None, namespace: str = "default") -> None:
    """Writes a kubeconfig file for `access`; `server` is another way to the same API server."""
    address = server or access.server
    entry: Json = {"server": address}
    if access.authority and address.startswith("https"):
        entry["certificate-authority"] = str(access.authority)
    user: Json = {}
    if access.token:
        user["token"] = access.token
    if access.certificate:
        user["client-certificate"] = str(access.certificate.certificate)
        user["client-key"] = str(access.certificate.key)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": entry}],
        "users": [{"name": "tests", "user": user}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests", "namespace": namespace}}],
        "current-context": "tests",
    }
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
