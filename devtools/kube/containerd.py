"""containerd, which runs a node's containers in the node's namespaces, with a store of images that outlives the node.

The store is the cache's, so that an image is unpacked once a machine. What runs belongs to one node: whatever a node
before it has left in the store (a killed one takes nothing back) is removed before kubelet can see it.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from devtools.images import Image
from devtools.kube.host_packages import cni_folder, find_program
from devtools.kube.node_namespaces import NodeNamespaces
from devtools.processes import Process, ServerFailedError, wait_until
from sink_job.engine.cache import cache_dir

_STORES = 4
_NAMESPACE = "k8s.io"
_CRI = "io.containerd.grpc.v1.cri"
_START_SECONDS = 30
# What kubelet's half of containerd calls each image too.
_BY_ID = "sha256:"

_CONFIG = """version = 2
root = "{root}"
state = "{state}"
disabled_plugins = [{disabled}]
[grpc]
  address = "{socket}"
[plugins."{cri}"]
  sandbox_image = "{pause}"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE no score may be lowered, and no pod would start.
  restrict_oom_score_adj = true
  [plugins."{cri}".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."{cri}".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."{cri}".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."{cri}".cni]
    bin_dir = "{cni_programs}"
    conf_dir = "{cni_config}"
"""
# The plug-ins for file systems that this one is not on; each would say so at every start.
_NEEDLESS = tuple(f"io.containerd.snapshotter.v1.{name}" for name in ("btrfs", "zfs", "aufs", "devmapper"))


class Containerd:
    """containerd in `namespaces`, its state in `folder`, its images in `store`; `pause` holds pods together."""

    def __init__(self, namespaces: NodeNamespaces, folder: Path, store: Path, *, pause: str) -> None:
        self._namespaces = namespaces
        self._folder = folder
        self._store = store
        self._pause = pause
        self._process: Process | None = None

    @property
    def socket(self) -> Path:
        return self._folder / "containerd.sock"

    def prepare(self, images: Sequence[Image]) -> None:
        """Takes away what an earlier node has left, and brings `images` into the store."""
        self._start(with_pods=False)
        try:
            for name in self.ctr("containers", "list", "--quiet").split():
                self.ctr("containers", "remove", name)
            for folder in ("containers", "sandboxes"):
                shutil.rmtree(self._store / _CRI / folder, ignore_errors=True)
            self.load(images)
        finally:
            self.kill()

    def load(self, images: Sequence[Image]) -> None:
        """Imports those of `images` that are not there, and lets go of others of their repositories, layers and all."""
        for image in images:
            present = self.ctr("images", "list", "--quiet").split()
            if image.name not in present:
                self.ctr("images", "import", str(image.archive))
            for other in present:
                if other.startswith(f"{image.repository}:") and other != image.name:
                    self.ctr("images", "remove", other)
        rows = [line.split() for line in self.ctr("images", "list").splitlines()[1:]]
        named = {digest for name, _, digest, *_ in rows if not name.startswith(_BY_ID)}
        for name, _, digest, *_ in rows:
            if name.startswith(_BY_ID) and digest not in named:
                self.ctr("images", "remove", "--sync", name)  # with the layers that only this one had

    def start(self) -> None:
        """Starts it for kubelet; `ServerFailedError` with the end of its log otherwise."""
        self._start(with_pods=True)

    def kill(self) -> None:
        """Ends it; running containers continue until the namespaces end."""
        if self._process:
            self._process.kill()
            self._process = None

    def ctr(self, *arguments: str) -> str:
        """Runs containerd's own client and gives its output; `ServerFailedError` when it fails."""
        command = [find_program("ctr") or "ctr", "--address", str(self.socket), "--namespace", _NAMESPACE, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerFailedError(f"ctr {' '.join(arguments)} failed: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def _start(self, *, with_pods: bool) -> None:
        config = self._write_config(with_pods=with_pods)
        command = self._namespaces.inside(find_program("containerd") or "containerd", "-c", config, "-l", "warn")
        process = Process(command, log=self._folder / "containerd.log", cwd=self._folder)
        self._process = process
        try:
            wait_until(self._answers, "containerd", seconds=_START_SECONDS, unless=process.failed)
        except ServerFailedError:
            self.kill()
            raise

    def _answers(self) -> bool:
        try:
            self.ctr("version")
        except ServerFailedError:
            return False
        return True

    def _write_config(self, *, with_pods: bool) -> Path:
        disabled = [*_NEEDLESS, *([] if with_pods else [_CRI])]
        path = self._folder / "containerd.toml"
        text = _CONFIG.format(
            root=self._store,
            state=self._folder / "containerd",
            socket=self.socket,
            disabled=", ".join(f'"{each}"' for each in disabled),
            cri=_CRI,
            pause=self._pause,
            cni_programs=cni_folder(),
            cni_config=self._folder / "cni",
        )
        path.write_text(text)
        return path


@contextlib.contextmanager
def image_store() -> Iterator[Path]:
    """A directory of the image cache with an exclusive lock; a second node uses a second one."""
    for number in range(_STORES):
        folder = cache_dir() / "kube" / f"containerd-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield folder
            return
    raise ServerFailedError(f"{_STORES} nodes run on this machine already")
