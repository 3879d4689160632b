"""Prepares a checkout: `python -m tools.setup [PART...]` installs requirements.lock into .venv and makes the parts.

Parts: s3-server, schema-registry, jars, class-archive, kafka-classes, kubernetes, prometheus, argocd,
kube-state-metrics, kube-router, images, chromium, docs.
Steps that do not depend on each other run side by side. What is up to date costs a second. Only the standard library is
imported here: no package is installed yet.

Packages are installed by uv, which is itself installed by pip, with pip's own settings of indexes and certificates; by
pip where uv cannot be had. The hashes of the lock file decide which files are accepted.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

from tools import pip_settings
from tools.steps import Report, Step, StepFailedError, command, ending, run_process, run_steps

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".installed"
LOCK_NAME = ".setup-lock"  # not .lock, which uv itself locks
UV_LOCK = ROOT / "tools" / "uv.lock"
OLDEST_PYTHON = (3, 11)
_PIP: list[str | Path] = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
PARTS = {
    # No package is needed for programs that Go builds.
    "s3-server": Step(command([sys.executable, "-m", "devtools.versitygw"], cwd=ROOT)),
    "schema-registry": Step(command([sys.executable, "-m", "devtools.schema_registry"], cwd=ROOT), after=["s3-server"]),
    "kubernetes": Step(command([sys.executable, "-m", "devtools.kube.build", "helm", "kubeconform"], cwd=ROOT)),
    "prometheus": Step(command([sys.executable, "-m", "devtools.prometheus"], cwd=ROOT), after=["kubernetes"]),
    "argocd": Step(command([sys.executable, "-m", "devtools.argocd"], cwd=ROOT), after=["prometheus"]),
    "kube-state-metrics": Step(
        command([sys.executable, "-m", "devtools.kube_state_metrics"], cwd=ROOT), after=["argocd"]
    ),
    "kube-router": Step(
        command([sys.executable, "-m", "devtools.kube_router"], cwd=ROOT), after=["kube-state-metrics"]
    ),
    "jars": Step(command([PYTHON, "-m", "devtools.jars"], cwd=ROOT), after=["packages"]),
    "class-archive": Step(
        command([PYTHON, "-m", "sink_job.spark.class_data_sharing"], cwd=ROOT), after=["packages", "jars"]
    ),
    "kafka-classes": Step(command([PYTHON, "-m", "devtools.kafka_classes"], cwd=ROOT), after=["packages", "jars"]),
    "images": Step(command([PYTHON, "-m", "devtools.images", "--if-possible"], cwd=ROOT), after=["packages", "jars"]),
    "chromium": Step(command([PYTHON, "-m", "devtools.chromium", "--if-possible"], cwd=ROOT), after=["packages"]),
    "docs": Step(command([PYTHON, "-m", "devtools.docs_site.packages", "--if-possible"], cwd=ROOT), after=["packages"]),
}
# PySpark comes as sources alone. Its wheel is unpacked at once, and its jars are compressed already.
_STORED = ["--config-settings-package", "pyspark:--build-option=--compression=stored"]


def expected_stamp() -> str:
    """The stamp of an environment that is up to date: a hash of everything that decides its content."""
    import tomllib  # only now: an older Python must reach the message in main

    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    digest.update((ROOT / "requirements.lock").read_bytes())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    installed = [project["build-system"], project["project"], project["tool"]["setuptools"]]
    digest.update(json.dumps(installed).encode())
    return digest.hexdigest()


def up_to_date() -> bool:
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text().strip() == expected_stamp()


def install(report: Report) -> None:
    """Makes .venv what requirements.lock says. Safe to be called by several processes at once."""
    with _locked(report):
        if up_to_date():
            return
        if not _has_pip():
            report("creating .venv")
            _create()
        report("installing uv")
        settings = pip_settings.read(PYTHON)
        try:
            uv = _uv(report)
            words: list[str | Path] = [uv, "pip", "install", "--python", PYTHON, *_STORED, *settings.uv_options()]
            _install(words, report, settings.uv_environment(os.environ))
        except StepFailedError as error:
            if ending():
                raise
            print(f"setup: pip installs the packages, as uv did not: {error}", file=sys.stderr, flush=True)
            _install(_PIP, report, {})
        STAMP.write_text(expected_stamp() + "\n")


def _has_pip() -> bool:
    """Whether .venv is complete: its Python still exists, and its creation was not interrupted."""
    if not PYTHON.exists():
        return False
    words: list[str | Path] = [PYTHON, "-m", "pip", "--version"]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _create() -> None:
    """Creates .venv in place of an incomplete one. Keeps the lock, which this process holds."""
    for path in VENV.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK_NAME:
            path.unlink()
    # With links, as `python -m venv` makes them: a process that another step starts meanwhile would have a copy of
    # Python open for writing, and the system does not execute such a file ("Text file busy").
    venv.create(VENV, with_pip=True, symlinks=os.name != "nt")


def _install(words: list[str | Path], report: Report, env: dict[str, str]) -> None:
    run_process([*words, "--require-hashes", "-r", "requirements.lock"], report, cwd=ROOT, env=env)
    run_process([*words, "--no-deps", "--editable", "."], report, cwd=ROOT, env=env)


def _uv(report: Report) -> Path:
    """The uv of tools/uv.lock, in the cache; StepFailedError where pip cannot install it."""
    from sink_job.engine.cache import cache_dir

    digest = hashlib.sha256(UV_LOCK.read_bytes()).hexdigest()[:12]
    folder = cache_dir() / f"uv-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="uv-") as work:
            run_process(
                [*_PIP, "--quiet", "--require-hashes", "--target", f"{work}/uv", "-r", UV_LOCK], report, cwd=ROOT
            )
            with contextlib.suppress(OSError):  # another process was first; its copy is the same
                Path(work, "uv").rename(folder)
    return folder / "bin" / "uv"


@contextlib.contextmanager
def _locked(report: Report) -> Iterator[None]:
    VENV.mkdir(exist_ok=True)
    with (VENV / LOCK_NAME).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another make that installs the packages")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    if sys.version_info < OLDEST_PYTHON:
        raise SystemExit(f"setup: Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed, this is {sys.version}")
    parser = argparse.ArgumentParser(prog="python -m tools.setup", description="Prepares a checkout.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parts = parser.parse_args().parts
    if unknown := sorted({*parts} - PARTS.keys()):
        parser.error(f"unknown parts: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    if up_to_date() and not parts:
        return 0
    # A background job of a shell ignores interrupts, and so would the processes of the steps.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    known = {"packages": Step(install)} | PARTS
    steps = {name: known[name] for name in known if name in with_needed(parts or ["packages"])}
    try:
        run_steps("setup", steps)
    except (StepFailedError, subprocess.SubprocessError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)
        if problem := _cache_problem():  # a read-only cache that has everything is no problem
            print(f"setup: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _cache_problem() -> str | None:
    """Why nothing can be written into the cache, and what to do; None if it can."""
    from sink_job.engine.cache import cache_dir

    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"the cache {folder} cannot be written ({error.strerror}): set S3SINK_CACHE to another directory"
    return None


def with_needed(parts: list[str]) -> set[str]:
    """The steps of these parts, and those that come before them."""
    steps = {*parts}
    for part in parts:
        steps |= with_needed([*PARTS[part].after]) if part in PARTS else set()
    return steps


if __name__ == "__main__":
    sys.exit(main())
