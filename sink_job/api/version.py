"""The version of this package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """The installed version; "0" for a checkout that is not installed."""
    try:
        return version("s3sink")
    except PackageNotFoundError:
        return "0"
