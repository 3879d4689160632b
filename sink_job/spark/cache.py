"""The folder of fetched and built files. Only the standard library is imported here."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The folder that all checkouts of a user share: `$S3SINK_CACHE`, else s3sink in `$XDG_CACHE_HOME` or ~/.cache."""
    if given := os.environ.get("S3SINK_CACHE"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "s3sink"
