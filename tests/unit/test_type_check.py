"""The cache of mypy that checkouts share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import type_check


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The cache of the user, with one file."""
    return written(tmp_path / "user" / "mypy", "kept", at=1_000)


def written(folder: Path, text: str, *, at: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cache.db").write_text(text)
    os.utime(folder / "cache.db", (at, at))
    return folder


def content(folder: Path) -> tuple[str, float]:
    file = folder / "cache.db"
    return file.read_text(), file.stat().st_mtime


def test_a_checkout_without_a_cache_takes_that_of_the_user_with_its_times(tmp_path: Path, kept: Path) -> None:
    type_check.take(kept, tmp_path / "clone" / "cache")
    assert content(tmp_path / "clone" / "cache") == ("kept", 1_000)


def test_a_checkout_keeps_the_cache_that_it_has(tmp_path: Path, kept: Path) -> None:
    own = written(tmp_path / "clone", "own", at=10)
    type_check.take(kept, own)
    assert content(own) == ("own", 10)


def test_a_newer_cache_of_a_checkout_becomes_that_of_the_user(tmp_path: Path, kept: Path) -> None:
    type_check.keep(written(tmp_path / "clone", "newer", at=2_000), kept)
    assert content(kept) == ("newer", 2_000)
    assert [path.name for path in kept.parent.iterdir() if path.is_dir()] == ["mypy"], "nothing else is left"


@pytest.mark.parametrize("at", [500, 1_000])
def test_an_older_or_equal_cache_changes_nothing(tmp_path: Path, kept: Path, at: int) -> None:
    type_check.keep(written(tmp_path / "clone", "older", at=at), kept)
    assert content(kept) == ("kept", 1_000)


def test_without_a_cache_of_the_user_there_is_one_afterwards(tmp_path: Path) -> None:
    kept = tmp_path / "user" / "mypy"
    type_check.take(kept, tmp_path / "clone")
    type_check.keep(written(tmp_path / "clone", "first", at=1), kept)
    assert content(kept) == ("first", 1)


@pytest.mark.parametrize(("code", "keeps"), [(0, 1), (1, 0)])
def test_only_the_cache_of_a_check_without_errors_is_kept(
    monkeypatch: pytest.MonkeyPatch, code: int, keeps: int
) -> None:
    kept: list[Path] = []
    monkeypatch.setattr(type_check, "take", lambda *_: None)
    monkeypatch.setattr(type_check, "keep", lambda own, _: kept.append(own))
    monkeypatch.setattr(type_check, "PROGRAM", "true" if code == 0 else "false")
    assert type_check.main([]) == code
    assert len(kept) == keeps
