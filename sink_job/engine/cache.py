"""The directory of downloaded and built files. This module imports only the standard library."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The cache of all checkouts of a user: `$S3SINK_CACHE`, else the directory s3sink in `$XDG_CACHE_HOME` or
    ~/.cache. Absolute: programs that run in other directories use it too."""
    if configured := os.environ.get("S3SINK_CACHE"):
        return Path(configured).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "s3sink"
