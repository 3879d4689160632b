"""Makes .venv what requirements.lock says, from nothing or from what is there; at once when nothing changed.

It runs before any package is installed, so it uses the standard library alone. The packages come from the registry that
the user's own pip is set up for; the hashes in the lock file say what is accepted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
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
    import tomllib  # only now: an older Python is to read a sentence, not a traceback

    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    digest.update((ROOT / "requirements.lock").read_bytes())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    installed = [project["build-system"], project["project"], project["tool"]["setuptools"]]
    digest.update(json.dumps(installed).encode())
    return digest.hexdigest()


def pip(*arguments: str) -> None:
    """Runs pip in the environment and shows how far it is; raises SystemExit with its output when it fails."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off", *arguments]
    output: list[str] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            output.append(line)
            show(line.strip(), sum(each.startswith("Collecting ") for each in output))
    if process.returncode:
        raise SystemExit("".join(output) + f"setup: pip ended with exit code {process.returncode}: {' '.join(command)}")


def show(line: str, collected: int) -> None:
    """One line that is written over on a terminal; elsewhere a line now and then, as some steps take minutes."""
    if sys.stdout.isatty():
        print(f"\r\033[K  {line[: shutil.get_terminal_size().columns - 3]}", end="", flush=True)
    elif collected and (line.startswith("Installing ") or (line.startswith("Collecting ") and collected % 10 == 0)):
        print(f"  {collected:3} packages: {line.partition(' (from')[0][:80]}", flush=True)


def main() -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise SystemExit(f"setup: Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed, this is {sys.version}")
    stamp = wanted()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text().strip() == stamp:
        return
    if not PYTHON.exists():
        print(f"setup: a virtual environment in {VENV.name}", flush=True)
        venv.create(VENV, with_pip=True)
    print("setup: the packages of requirements.lock (PySpark alone is 400 MB: minutes, the first time)", flush=True)
    pip("--require-hashes", "-r", "requirements.lock")
    pip("--no-deps", "--editable", ".")
    STAMP.write_text(stamp + "\n")
    print("\r\033[Ksetup: done" if sys.stdout.isatty() else "setup: done", flush=True)


if __name__ == "__main__":
    main()
