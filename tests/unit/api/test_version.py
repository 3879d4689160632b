"""The version of the package."""

from __future__ import annotations

import importlib.metadata

import pytest

from sink_job.api import version


def test_the_version_is_that_of_the_installed_package() -> None:
    assert version.package_version() == importlib.metadata.version("s3sink")


def test_a_checkout_that_is_not_installed_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(version, "version", absent)
    assert version.package_version() == "0"
