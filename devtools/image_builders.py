"""What builds images on this machine: a Docker engine that answers, podman, or buildah, which needs no daemon.

How this machine reaches pip's index, Debian and Maven (a proxy, a mirror, an authority of its own) is mounted while
podman and buildah build, and is in no layer afterwards; the jars are this machine's. Docker gets only the index.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from devtools.kube.host_packages import Machine, find_program, require
from devtools.processes import ServerFailedError
from sink_job.engine.cache import cache_dir
from sink_job.spark.jars import client_jars
from sink_job.spark.login_jars import msk_iam_jars

_SUITE = "bookworm"
_BASE_PACKAGES = ("ca-certificates", "python3", "python3-venv")
_UNWANTED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_MOUNTED = "/run/s3sink-build"
_PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}
_PROGRESS_INTERVAL_S = 20.0
_REPOSITORY = "localhost/s3sink-"
_STAGES = f"{_REPOSITORY}stage"
_FROM = re.compile(r"FROM (\S+) AS (\S+)")
_COPY = re.compile(r"COPY --from=(\S+)")


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

    def tidy(self, name: str, dockerfile: Path, context: Path, options: Sequence[str]) -> None:
        """Lets go of what no image of now needs, after `name` was built so. An engine of the user's is left alone."""
        return

    def _run(self, *arguments: str | Path) -> str:
        """The output of a command, with progress lines. Raises ServerFailedError."""
        command = [self.program, *map(str, arguments)]
        output: list[str] = []
        with (
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            ) as process,
            _progress(output),
        ):
            assert process.stdout
            output.extend(process.stdout)
        if process.returncode:
            raise ServerFailedError(f"{' '.join(command[:3])} … failed:\n{''.join(output)[-4000:]}")
        return "".join(output)


class Docker(Builder):
    """An engine that answers."""

    def build(self, name: str, dockerfile: Path, context: Path, options: Sequence[str]) -> None:
        index = _pip_setting("global.index-url")
        build_args = ["--build-arg", f"PIP_INDEX_URL={index}"] if index else []
        self._run("build", "--tag", name, "--file", dockerfile, *build_args, *options, context)

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

    def tidy(self, name: str, dockerfile: Path, context: Path, options: Sequence[str]) -> None:
        """Layers are kept by names: those of the stages of now, so that the next build finds them, and of the images.

        The store is ours alone, and one process at a time works on it, so containers in it are those of killed builds.
        """
        self._run("rm", *self._where(), "--all")
        repository, _, _ = name.rpartition(":")
        if "--target" in options:
            where = options.index("--target")
            for stage in stages_beside(dockerfile.read_text(), options[where + 1]):
                of_stage = [*options[:where], "--target", stage, *options[where + 2 :]]
                self.build(f"{_STAGES}:{stage}", dockerfile, context, of_stage)
        for other in self._names():
            is_old_base = other.startswith(f"{_REPOSITORY}base:") and other != self.base()
            if is_old_base or (other.startswith(f"{repository}:") and other != name):
                self._run("rmi", *self._where(), "--force", other)
        self._run("rmi", *self._where(), "--prune")
        # The driver of the store mounts its folder on itself, which would prevent the removal of the cache.
        for mount in _mounts_below(self._store):
            subprocess.run(["umount", mount], capture_output=True, check=False)

    def _names(self) -> list[str]:
        lines = self._run("images", *self._where(), "--format", "{{.Name}}:{{.Tag}}").splitlines()
        return [line for line in lines if line.startswith(_REPOSITORY)]

    def _where(self) -> list[str]:
        return ["--root", f"{self._store}/root", "--runroot", f"{self._store}/run", "--storage-driver", "overlay"]

    def _has(self, name: str) -> bool:
        return bool(self._run("images", *self._where(), "--quiet", "--filter", f"reference={name}").strip())

    def _make_base(self, name: str) -> None:
        """A Debian with Python and apt, from Debian's packages, as slim as the usual ones."""
        say("making a Debian of its packages, for images to stand on (once, a minute) ...")
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


@contextlib.contextmanager
def _progress(output: Sequence[str]) -> Iterator[None]:
    """Logs the last line of `output` every few seconds. The list grows meanwhile."""
    done = threading.Event()

    def log_progress() -> None:
        while not done.wait(_PROGRESS_INTERVAL_S):
            steps = [line for line in output if line.startswith(("STEP", "[", "Step"))]
            words = [lines[-1].strip()[:100] for lines in (steps, list(output)) if lines]
            say("  " + " … ".join(dict.fromkeys(words)) if words else "  still running ...")

    thread = threading.Thread(target=log_progress, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def stages_beside(dockerfile: str, target: str) -> list[str]:
    """The stages that `target` copies from, directly or not, and that are the base of none of its other stages: whoever
    keeps these and the target's image keeps all of its layers."""
    bases: dict[str, str] = {}
    copied: dict[str, set[str]] = {}
    name = ""
    for line in dockerfile.splitlines():
        if found := _FROM.match(line):
            name = found[2]
            bases[name], copied[name] = found[1], set()
        elif found := _COPY.match(line):
            copied[name].add(found[1])
    required = {target}
    for stage in reversed(bases):
        required |= {bases[stage], *copied[stage]} if stage in required else set()
    bases_used = {bases[stage] for stage in bases if stage in required}
    return [stage for stage in bases if stage in required and stage not in bases_used and stage != target]


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


def _hash_of_base() -> str:
    return hashlib.sha256(repr((_SUITE, _BASE_PACKAGES, _UNWANTED)).encode()).hexdigest()[:8]


@contextlib.contextmanager
def _mounted() -> Iterator[list[str]]:
    """The words that mount this machine's ways to its registries into a build, and the arguments that name them."""
    with tempfile.TemporaryDirectory(prefix="s3sink-build-") as name:
        folder = Path(name)
        (folder / "jars").mkdir()
        for jar in [*client_jars(), *msk_iam_jars()]:
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
        build_args = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
        yield ["--volume", f"{folder}:{_MOUNTED}:ro", *build_args]


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
    """The certificates that this machine's pip is configured to trust, if any."""
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
    required = ("Acquire::http", "Acquire::https", "Acquire::Check-")
    return [line for line in lines if line.startswith(required) and not line.endswith('"";')]


def _answers(program: str, *words: str) -> bool:
    try:
        done = subprocess.run([program, *words], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def say(text: str) -> None:
    """A line for the person who waits."""
    print(text, file=sys.stderr, flush=True)


def _mounts_below(folder: Path) -> list[str]:
    """What is mounted there, the innermost first."""
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return sorted((point for point in points if point.startswith(f"{folder.resolve()}/")), key=len, reverse=True)
