"""Makes .venv what requirements.lock says, from nothing or from what is there; at once when nothing changed.

It runs before any package is installed, so it uses the standard library alone. The packages come from the registry that
the user's own pip is set up for; the hashes in the lock file say what is accepted.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
STAMP = VENV / ".installed"
OLDEST_PYTHON = (3, 11)


def wanted() -> str:
    """The stamp of an environment that is up to date: a hash over everything that decides its content."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for name in ("requirements.lock", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def step(text: str, *arguments: str) -> None:
    """Runs pip in the environment, saying what for; raises SystemExit with pip's own exit code when it fails."""
    print(f"setup: {text}", flush=True)
    bar = "on" if sys.stdout.isatty() else "off"
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments, "--progress-bar", bar]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        raise SystemExit(f"setup: pip ended with exit code {code}: {' '.join(command)}")


def main() -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise SystemExit(f"setup: Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed, this is {sys.version}")
    stamp = wanted()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text().strip() == stamp:
        return
    if not PYTHON.exists():
        print(f"setup: a virtual environment in {VENV.name}", flush=True)
        venv.create(VENV, with_pip=True)
    step("the locked packages (PySpark alone is 400 MB: a few minutes the first time)",
         "install", "--quiet", "--require-hashes", "-r", "requirements.lock")  # fmt: skip
    step("s3sink itself, editable", "install", "--quiet", "--no-deps", "--editable", ".")
    STAMP.write_text(stamp + "\n")
    print("setup: done", flush=True)


if __name__ == "__main__":
    main()
