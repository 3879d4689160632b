"""The images of the project's Dockerfile, built by what this machine has: a Docker engine that answers, podman, or
buildah, which needs no daemon.

An image belongs to one state of what goes into it (`Image.name` ends in a hash of that) and is kept as an archive in
the cache, which containerd and docker can load. Docker and podman fetch the Dockerfile's base from its registry;
buildah takes a Debian made here of Debian's packages. `S3SINK_BASE_IMAGE` names another base for all three.

How this machine reaches pip's index, Debian and Maven (a proxy, a mirror, an authority of its own) is mounted while
podman and buildah build, and is in no layer afterwards; the jars are this machine's. Docker is told the index alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from devtools.kube.packages import Machine, find_program, require
from devtools.processes import ServerFailedError
from sink_job.spark.jars import cache_dir, connector_jars

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("operator", "job")
_CONTEXT = ("Dockerfile", ".dockerignore", "pyproject.toml", "LICENSE", "container", "operator", "sink_job")
_SUITE = "bookworm"
_BASE_PACKAGES = ("ca-certificates", "python3", "python3-venv")
_UNWANTED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_MOUNTED = "/run/s3sink-build"
_PAUSE = 'FROM {base}\nUSER 65535:65535\nENTRYPOINT ["sleep", "infinity"]\n'
_PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}


@dataclass(frozen=True)
class Image:
    """An image that is built: the name by which pods ask for it, and its archive (as `docker save` writes it)."""

    name: str
    archive: Path

    @property
    def repository(self) -> str:
        return self.name.rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.name.rpartition(":")[2]


class Builder(ABC):
    """A program that builds images and keeps their layers."""

    def __init__(self, program: str) -> None:
        self.program = program

    def base(self) -> str:
        """The base to build on; empty for the Dockerfile's own."""
        return os.environ.get("S3SINK_BASE_IMAGE", "")

    @abstractmethod
    def build(self, name: str, dockerfile: Path, context: Path, options: Sequence[str]) -> None:
        """Builds the image `name`."""

    @abstractmethod
    def save(self, name: str, archive: Path) -> None:
        """Writes `archive`."""

    def _run(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
        command = [self.program, *map(str, arguments)]
        environment = {**os.environ, **(env or {})}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            raise ServerFailedError(f"{' '.join(command[:3])} … failed:\n{done.stdout[-4000:]}")
        return done.stdout


class Docker(Builder):
    """An engine that answers."""

    def build(self, name: str, dockerfile: Path, context: Path, options: Sequence[str]) -> None:
        index = _pip_setting("global.index-url")
        told = ["--build-arg", f"PIP_INDEX_URL={index}"] if index else []
        self._run("build", "--tag", name, "--file", dockerfile, *told, *options, context)

    def save(self, name: str, archive: Path) -> None:
        self._run("save", "--output", archive, name)


class Podman(Builder):
    def build(self, name: str, dockerfile: Path, context: Path, options: Sequence[str]) -> None:
        with _mounted() as mounts:
            words = ["--layers", "--network", "host", *mounts, *options]
            self._run("build", "--tag", name, "--file", dockerfile, *words, context)

    def save(self, name: str, archive: Path) -> None:
        self._run("save", "--format", "docker-archive", "--output", archive, name)


class Buildah(Builder):
    """Without a daemon and without a registry: the base is made here. Layers are kept in the cache."""

    def __init__(self, program: str) -> None:
        super().__init__(program)
        self._store = cache_dir() / "images" / "buildah"

    def base(self) -> str:
        if given := super().base():
            return given
        name = f"localhost/s3sink-base:{_SUITE}-{_hash_of_base()}"
        if not self._has(name):
            self._make_base(name)
        return name

    def build(self, name: str, dockerfile: Path, context: Path, options: Sequence[str]) -> None:
        with _mounted() as mounts:
            words = ["--layers", "--isolation", "chroot", "--network", "host", "--pull-never", *mounts, *options]
            self._run("build", *self._where(), "--tag", name, "--file", dockerfile, *words, context)

    def save(self, name: str, archive: Path) -> None:
        # Compressing a gigabyte would take longer than all that follows.
        where = [*self._where(), "--disable-compression", "--quiet"]
        self._run("push", *where, name, f"docker-archive:{archive}:{name}")

    def _where(self) -> list[str]:
        return ["--root", f"{self._store}/root", "--runroot", f"{self._store}/run", "--storage-driver", "overlay"]

    def _has(self, name: str) -> bool:
        return bool(self._run("images", *self._where(), "--quiet", "--filter", f"reference={name}").strip())

    def _make_base(self, name: str) -> None:
        """A Debian with Python and apt, from Debian's packages, as slim as the usual ones."""
        _say("making a Debian of its packages, for images to stand on (once, a minute) ...")
        with tempfile.TemporaryDirectory(dir=cache_dir() / "images", prefix="base-") as work:
            archive = Path(work, "base.tar")
            options = ["--quiet", "--mode=root", "--variant=apt", '--aptopt=APT::Install-Recommends "false"']
            options += [f"--aptopt={line}" for line in _apt_settings()]
            options += [f"--dpkgopt=path-exclude={pattern}" for pattern in _UNWANTED]
            # The settings above are this machine's.
            options += ['--customize-hook=rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap']
            command = ["mmdebstrap", *options, f"--include={','.join(_BASE_PACKAGES)}", _SUITE, str(archive)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ServerFailedError(f"mmdebstrap {_SUITE} failed:\n{done.stderr[-2000:]}")
            container = self._run("from", *self._where(), "--quiet", "scratch").strip()
            self._run("add", *self._where(), "--quiet", container, archive, "/")
            self._run("commit", *self._where(), "--quiet", "--rm", container, name)


def built(*targets: str) -> list[Image]:
    """Images of the Dockerfile's targets (`operator`, `job`) or `pause`, of the cache or built now.

    `S3SINK_IMAGES=kept` takes those of the cache as they are, of whatever code, where there are any. Raises
    `ServerFailedError` with the builder's words, or with what is missing on this machine.
    """
    folder = cache_dir() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    if os.environ.get("S3SINK_IMAGES") == "kept":
        kept = [_kept(folder, target) for target in targets]
        if all(kept):
            return [image for image in kept if image]
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        builder = builder_here()
        with _snapshot() as context:
            return [_image(builder, target, folder, context) for target in targets]


def builder_here() -> Builder:
    """What builds images on this machine; buildah is installed where that is possible and nothing else is there."""
    if (docker := find_program("docker")) and _answers(docker, "version", "--format", "{{.Server.Version}}"):
        return Docker(docker)
    if (podman := find_program("podman")) and _answers(podman, "info"):
        return Podman(podman)
    require(Machine.here(_PROGRAMS, cni=False))
    buildah = find_program("buildah")
    assert buildah
    return Buildah(buildah)


def reason_against() -> str | None:
    """Why no image can be built here, in a sentence; None where it can."""
    for name, words in (("docker", ("version", "--format", "{{.Server.Version}}")), ("podman", ("info",))):
        if (program := find_program(name)) and _answers(program, *words):
            return None
    reason = Machine.here(_PROGRAMS, cni=False).reason_against()
    return f"no Docker engine answers, there is no podman, and for buildah {reason}" if reason else None


def _kept(folder: Path, target: str) -> Image | None:
    archive = next(folder.glob(f"{target}-*.tar"), None)
    return Image(f"localhost/s3sink-{target}:{archive.stem.rpartition('-')[2]}", archive) if archive else None


def _image(builder: Builder, target: str, folder: Path, context: Path) -> Image:
    key = _key(builder, None if target == "pause" else context)
    image = Image(f"localhost/s3sink-{target}:{key}", folder / f"{target}-{key}.tar")
    if image.archive.exists():
        return image
    _say(f"building the image {image.name} (minutes, the first time) ...")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder, prefix="saving-") as work:
        base = builder.base()
        if target == "pause":
            dockerfile = Path(work, "Dockerfile")
            dockerfile.write_text(_PAUSE.format(base=base or _dockerfile_base()))
            builder.build(image.name, dockerfile, Path(work), [])
        else:
            given = ["--build-arg", f"BASE_IMAGE={base}"] if base else []
            builder.build(image.name, context / "Dockerfile", context, ["--target", target, *given])
        made = Path(work, "image.tar")
        builder.save(image.name, made)
        for old in folder.glob(f"{target}-*.tar"):
            old.unlink()
        made.rename(image.archive)
    size = image.archive.stat().st_size / 1e6
    _say(f"built {image.name} in {time.monotonic() - begin:.0f} s, {size:.0f} MB")
    return image


@contextlib.contextmanager
def _snapshot() -> Iterator[Path]:
    """A copy of what the Dockerfile may copy, so that what is hashed is what is built, whoever edits meanwhile."""
    with tempfile.TemporaryDirectory(prefix="s3sink-context-") as work:
        for name in _CONTEXT:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, Path(work, name), ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
                )
            else:
                shutil.copy2(ROOT / name, work)
        yield Path(work)


def _key(builder: Builder, context: Path | None) -> str:
    """A hash over all that goes into an image: its base, and the files of `context`."""
    digest = hashlib.sha256(f"{type(builder).__name__} {builder.base()} {_PAUSE}".encode())
    for path in sorted(context.rglob("*")) if context else ():
        if path.is_file():
            digest.update(f"{path.relative_to(context or ROOT)} {path.stat().st_mode & 0o111}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _hash_of_base() -> str:
    return hashlib.sha256(repr((_SUITE, _BASE_PACKAGES, _UNWANTED)).encode()).hexdigest()[:8]


def _dockerfile_base() -> str:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("ARG BASE_IMAGE="))


@contextlib.contextmanager
def _mounted() -> Iterator[list[str]]:
    """The words that mount this machine's ways to its registries into a build, and the arguments that name them."""
    with tempfile.TemporaryDirectory(prefix="s3sink-build-") as name:
        folder = Path(name)
        (folder / "jars").mkdir()
        for jar in connector_jars():
            shutil.copy(jar, folder / "jars")
        lines = ["[global]"]
        if index := _pip_setting("global.index-url"):
            lines.append(f"index-url = {index}")
        if authorities := _authorities():
            shutil.copy(authorities, folder / "ca.pem")
            lines.append(f"cert = {_MOUNTED}/ca.pem")
        (folder / "pip.conf").write_text("\n".join(lines) + "\n")
        (folder / "apt.conf").write_text("\n".join(_apt_settings()) + "\n")
        arguments = {
            "PIP_CONFIG_FILE": f"{_MOUNTED}/pip.conf",
            "APT_CONFIG": f"{_MOUNTED}/apt.conf",
            "S3SINK_JARS": f"{_MOUNTED}/jars",
        }
        told = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
        yield ["--volume", f"{folder}:{_MOUNTED}:ro", *told]


def _pip_setting(name: str) -> str:
    """A setting of this machine's pip, from its files or the environment; empty where there is none."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    value = found.get(f":env:.{name.partition('.')[2]}") or found.get(name) or ""
    return value.strip("'\"")


def hosts_of_this_machine() -> list[str]:
    """The hosts by which this machine alone reaches its registries: they must not get into an image."""
    addresses = [_pip_setting("global.index-url"), os.environ.get("S3SINK_MAVEN_ROOT", "")]
    addresses += [line.split('"')[1] for line in _apt_settings() if '"' in line]
    hosts = {urlsplit(address).hostname or "" for address in addresses}
    return sorted(hosts - {"", "localhost", "pypi.org", "repo1.maven.org"})


def _authorities() -> Path | None:
    """The certificates that this machine's pip trusts, where it is told of any."""
    for given in (_pip_setting("global.cert"), os.environ.get("SSL_CERT_FILE"), os.environ.get("REQUESTS_CA_BUNDLE")):
        if given and Path(given).is_file():
            return Path(given)
    return None


def _apt_settings() -> list[str]:
    """How this machine's apt fetches (proxies, what it believes of dates), as lines of its settings."""
    apt = find_program("apt-config")
    if not apt:
        return []
    lines = subprocess.run([apt, "dump"], capture_output=True, text=True, check=False).stdout.splitlines()
    wanted = ("Acquire::http", "Acquire::https", "Acquire::Check-")
    return [line for line in lines if line.startswith(wanted) and not line.endswith('"";')]


def _answers(program: str, *words: str) -> bool:
    try:
        done = subprocess.run([program, *words], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """`python -m devtools.images [operator] [job] [pause]`: builds images and prints their names and archives."""
    if unknown := set(sys.argv[1:]) - {*TARGETS, "pause"}:
        sys.exit(f"images: no target {' '.join(sorted(unknown))}: operator, job, pause")
    for image in built(*(sys.argv[1:] or TARGETS)):
        print(image.name, image.archive)


if __name__ == "__main__":
    main()
