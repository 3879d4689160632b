"""What builds the documentation site, in the cache: the packages of tools/docs.lock, and the script of the diagrams.

`python -m devtools.docs_site.packages --if-possible` fetches them before their first use; no failure is an error then.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from devtools.processes import ServerFailedError
from sink_job.engine.cache import cache_dir

_LOCK = Path(__file__).resolve().parents[2] / "tools" / "docs.lock"
# The published file, 5 MB, is too large for the repository. npm fetches it, with the registry and proxy of the user.
MERMAID_VERSION = "12.3.0"
_MERMAID_SHA512 = "4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw=="
_TIMEOUT_S = 600


def packages() -> Path:
    """The folder of the installed packages, for PYTHONPATH. Raises ServerFailedError where pip cannot install them."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode() + _LOCK.read_bytes()).hexdigest()[:12]
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]

    def install(folder: Path) -> None:
        _run([*pip, "--require-hashes", "--target", folder, "-r", _LOCK], cwd=folder.parent)

    return _cached(f"docs-{digest}", install)


def mermaid_is_available() -> bool:
    """Whether the script of the diagrams is in the cache, or can be fetched."""
    return shutil.which("npm") is not None or (cache_dir() / f"mermaid-{MERMAID_VERSION}").exists()


def mermaid() -> Path:
    """The script that draws diagrams, of the package with this checksum. Raises ServerFailedError without npm."""
    if (folder := cache_dir() / f"mermaid-{MERMAID_VERSION}").exists():
        return folder / "mermaid.min.js"
    if (npm := shutil.which("npm")) is None:
        raise ServerFailedError("no npm on PATH: install Node.js, which fetches mermaid for the diagrams")

    def fetch(folder: Path) -> None:
        _run([npm, "pack", "--silent", f"mermaid@{MERMAID_VERSION}"], cwd=folder.parent)
        archive = folder.parent / f"mermaid-{MERMAID_VERSION}.tgz"
        found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != _MERMAID_SHA512:
            raise ServerFailedError(f"mermaid {MERMAID_VERSION} has the SHA-512 {found}, expected {_MERMAID_SHA512}")
        folder.mkdir()
        with tarfile.open(archive) as files, (folder / "mermaid.min.js").open("wb") as script:
            if (member := files.extractfile("package/dist/mermaid.min.js")) is None:
                raise ServerFailedError(f"mermaid {MERMAID_VERSION} has no dist/mermaid.min.js")
            shutil.copyfileobj(member, script)

    return _cached(folder.name, fetch) / "mermaid.min.js"


def _cached(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, which `make` creates beside other processes that do the same."""
    folder = cache_dir() / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="docs-") as work:
            made = Path(work, "made")
            make(made)
            with contextlib.suppress(OSError):  # another process was first; its copy is the same
                made.rename(folder)
    return folder


def _run(words: list[str | Path], *, cwd: Path) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise ServerFailedError(
            f"{words[0]} ended with exit code {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}"
        )


if __name__ == "__main__":
    try:
        print(packages(), mermaid())
    except ServerFailedError as error:
        print(error, file=sys.stderr)
        sys.exit(0 if "--if-possible" in sys.argv else 1)
