"""The parts of requirements.lock that the images install: one file for each image, every pin and hash as it is there.

What the extras of an image need is read from the packages of .venv, as `make setup` made it, so nothing is resolved a
second time.
`python tools/locks.py` writes container/operator.lock and container/job.lock.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "container"
EXTRAS = {"operator": ("operator",), "job": ("job", "tables")}
"""The extras of pyproject.toml that each image has."""
_HEAD = "# The packages of requirements.lock that the extra [{}] needs; made by `make lock`.\n"
# What an image never is, so that what is for such platforms alone stays out.
_IMAGE = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}


def pins(lock: str) -> Mapping[str, str]:
    """The entries of a lock file by canonical name: the pin with its hashes, without comments."""
    entries: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lock.splitlines():
        if found := re.match(r"([A-Za-z0-9][\w.-]*)==", line):
            current = entries.setdefault(canonicalize_name(found[1]), [])
        if line and not line.lstrip().startswith("#"):
            current.append(line)
    return {name: "\n".join(lines) + "\n" for name, lines in entries.items()}


def closure(requirements: Iterable[str]) -> set[str]:
    """The canonical names of all that `requirements` (as in pyproject.toml) needs on Linux, themselves included.

    Raises PackageNotFoundError for a package that is not installed.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        below = (Requirement(text) for text in requires(requirement.name) or ())
        left += [each for each in below if _applies(each, requirement.extras)]
    return {name for name, _ in seen}


def outputs() -> dict[Path, str]:
    """What each file has to hold."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = pins((ROOT / "requirements.lock").read_text())
    made = {}
    for image, extras in EXTRAS.items():
        needed = [requirement for extra in extras for requirement in project["optional-dependencies"][extra]]
        names = closure([*project["dependencies"], *needed])
        made[FOLDER / f"{image}.lock"] = _HEAD.format(",".join(extras)) + "".join(
            locked[name] for name in sorted(names)
        )
    return made


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**_IMAGE, "extra": extra}) for extra in ("", *extras))


def main() -> None:
    try:
        made = outputs()
    except (PackageNotFoundError, KeyError) as error:
        sys.exit(f"locks: {error} is not in .venv or not in requirements.lock: run `make setup`, then `make lock`")
    for path, text in made.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
