"""A headless Chromium for tests: `python -m devtools.chromium --if-possible` fetches it into the cache.

The npm package @sparticuz/chromium has one file for x86-64 Linux with the libraries that it needs. It is fetched like
any package, from the registry of npm's configuration, and its pinned digest decides. A Chromium of the system is used
instead if there is one.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import platform
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pyarrow as pa

from sink_job.engine.cache import cache_dir

VERSION: Final = "153.0.0"
SHA512: Final = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
_REGISTRY: Final = "https://registry.npmjs.org"
_TIMEOUT_S: Final = 60
_LIBRARIES: Final = "al2023.tar"
_FONTS: Final = "fonts.tar"


def chromium() -> str | None:
    """The path of a Chromium: that of the system, or the one in the cache."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    installed = _folder() / "run"
    return found or (str(installed) if installed.exists() else None)


def _folder() -> Path:
    return cache_dir() / f"chromium-{VERSION}"


def install() -> str:
    """Fetches Chromium into the cache, unless there is one; returns its path. Raises OSError."""
    if (found := chromium()) is not None:
        return found
    folder = _folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="chromium-") as work:
        made = Path(work, "chromium")
        _unpack(_package(), made)
        try:
            made.rename(folder)
        except OSError:  # another process was first
            if not folder.exists():
                raise
    return str(folder / "run")


def _package() -> bytes:
    """The package. Raises OSError, also for other bytes than the pinned ones."""
    registry = os.environ.get("npm_config_registry", _REGISTRY)  # noqa: SIM112 - npm's own name
    url = f"{registry.rstrip('/')}/@sparticuz/chromium/-/chromium-{VERSION}.tgz"
    with urlopen(url, timeout=_TIMEOUT_S) as answer:
        content: bytes = answer.read()
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if digest != SHA512:
        raise OSError(f"{url} has the digest sha512-{digest}, and not sha512-{SHA512}")
    return content


def _unpack(package: bytes, folder: Path) -> None:
    """The program, its libraries, its fonts, and `run`, which starts it with them."""
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        packed = {
            Path(each.name).name.removesuffix(".br"): files.extractfile(each)
            for each in files
            if each.name.endswith(".br")
        }
        unpacked = {name: _brotli(file.read()) for name, file in packed.items() if file is not None}
    folder.mkdir()
    program = folder / "chromium"
    program.write_bytes(unpacked["chromium"])
    for name in (_LIBRARIES, _FONTS):
        with tarfile.open(fileobj=io.BytesIO(unpacked[name])) as files:
            files.extractall(folder, filter="data")
    script = folder / "run"
    script.write_text(
        '#!/bin/sh\nhere=$(dirname "$0")\n'
        'LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/lib" exec "$here/chromium" "$@"\n'
    )
    for each in (program, script):
        each.chmod(0o755)


def _brotli(content: bytes) -> bytes:
    data: bytes = pa.CompressedInputStream(pa.BufferReader(content), "brotli").read()
    return data


def main() -> int:
    if chromium() is None and (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        print("chromium: there is none for this system: tests in a browser are skipped")
        return 0
    try:
        print(f"chromium: {install()}")
    except OSError as error:
        print(f"chromium: cannot be fetched, so tests in a browser are skipped: {error}")
        return 0 if "--if-possible" in sys.argv else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
