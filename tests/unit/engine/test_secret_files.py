"""The files of a mounted Secret, as the kubelet replaces them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.engine.secret_files import current_version, file_stamp, read_key


def publish(directory: Path, version: str, **keys: str) -> None:
    """Writes a version and replaces the link `..data`, as the kubelet does."""
    (directory / version).mkdir()
    for name, text in keys.items():
        (directory / version / name).write_text(text)
    (directory / "..new").symlink_to(version)
    (directory / "..new").rename(directory / "..data")


def test_all_files_are_of_the_version_that_was_current_at_the_start(tmp_path: Path) -> None:
    publish(tmp_path, "..1", key="a")
    version = current_version(tmp_path)
    publish(tmp_path, "..2", key="b")
    assert (version / "key").read_text() == "a"
    assert (current_version(tmp_path) / "key").read_text() == "b"


def test_a_directory_that_the_kubelet_does_not_manage_is_its_own_version(tmp_path: Path) -> None:
    assert current_version(tmp_path) == tmp_path


def test_a_stamp_differs_after_each_change_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    stamps = [file_stamp(path)]
    path.write_text("a")
    os.utime(path, ns=(0, 0))
    stamps.append(file_stamp(path))
    path.write_text("bb")
    os.utime(path, ns=(0, 0))
    stamps.append(file_stamp(path))
    os.utime(path, ns=(0, 1))
    stamps.append(file_stamp(path))
    assert stamps[0] is None
    assert len(set(stamps)) == 4
    assert file_stamp(path) == stamps[-1]


@pytest.mark.parametrize(("text", "key"), [("abc", "abc"), (" abc\n", "abc"), ("", ""), ("a b\n", "a b")])
def test_a_key_has_no_white_space_around_it(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "key").write_text(text)
    assert read_key(tmp_path / "key", "the key") == key


def test_a_key_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert read_key(tmp_path / "key", "the key") == ""


def test_a_key_that_cannot_be_read_is_not_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"secret\xff")
    with pytest.raises(SecretNotFound) as error:
        read_key(path, "spec.s3.credentials")
    assert str(error.value) == f"spec.s3.credentials: {path} cannot be read: UnicodeDecodeError"
    assert "secret\\xff" not in repr(error.value)
