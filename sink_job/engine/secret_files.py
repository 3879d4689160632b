"""The files of a mounted Secret: a directory with one file per key.

The kubelet updates such a directory by replacing the symbolic link `..data`.
"""

from __future__ import annotations

from pathlib import Path

from sink_job.api.errors import SecretNotFound

Stamp = tuple[int, int, int] | None
"""Inode, time of modification in ns and size in bytes; None for a file that does not exist."""


def current_version(directory: Path) -> Path:
    """The directory of the current version of the Secret. Files that are read from the result have one version."""
    link = directory / "..data"
    return link.resolve() if link.exists() else directory


def file_stamp(path: Path) -> Stamp:
    """A value that differs after a change of the file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_key(path: Path, what: str) -> str:
    """The text of a key without white space around it; empty if the file does not exist.

    Raises SecretNotFound if the file cannot be read; its message begins with `what` and does not contain the text.
    """
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SecretNotFound(f"{what}: {path} cannot be read: {type(error).__name__}") from error
