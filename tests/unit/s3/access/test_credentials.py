import os
from pathlib import Path

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.s3.access.credentials import DirectoryCredentials


def _mount(directory: Path, generation: str) -> None:
    """Updates a mounted Secret as the kubelet does: a new directory, and an atomic replacement of the link `..data`."""
    (directory / generation).mkdir(parents=True)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        (directory / generation / name).write_text(f"{generation} {name}\n")
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    (directory / "..new").symlink_to(generation)
    (directory / "..new").rename(directory / "..data")


def test_credentials_are_read_from_a_directory(secret: Path) -> None:
    keys = DirectoryCredentials(secret).get_frozen_credentials()
    assert (keys.access_key, keys.secret_key, keys.token) == ("the-access-key", "the-secret-key", None)


def test_a_rotated_secret_is_used_for_the_next_request(tmp_path: Path) -> None:
    _mount(tmp_path, "first")
    credentials = DirectoryCredentials(tmp_path)
    assert credentials.get_frozen_credentials().secret_key == "first AWS_SECRET_ACCESS_KEY"
    _mount(tmp_path, "second")
    keys = credentials.get_frozen_credentials()
    assert {keys.access_key, keys.secret_key, keys.token} == {
        "second AWS_ACCESS_KEY_ID",
        "second AWS_SECRET_ACCESS_KEY",
        "second AWS_SESSION_TOKEN",
    }


def test_unchanged_files_are_not_read_again(secret: Path) -> None:
    credentials = DirectoryCredentials(secret)
    assert credentials.get_frozen_credentials() is credentials.get_frozen_credentials()


def test_the_old_credentials_are_used_during_a_rotation(secret: Path) -> None:
    credentials = DirectoryCredentials(secret)
    (secret / "AWS_ACCESS_KEY_ID").unlink()
    assert credentials.get_frozen_credentials().access_key == "the-access-key"
    (secret / "AWS_ACCESS_KEY_ID").write_text("the-next-key")
    assert credentials.get_frozen_credentials().access_key == "the-next-key"


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_the_error_for_an_incomplete_secret_names_the_missing_key(secret: Path, name: str) -> None:
    (secret / name).unlink()
    with pytest.raises(SecretNotFound, match=f"has no {name};"):
        DirectoryCredentials(secret)


def test_the_error_for_an_unreadable_key_names_it_without_its_content(secret: Path) -> None:
    (secret / "AWS_SECRET_ACCESS_KEY").write_bytes(b"\xff\xfe the-secret-key")
    with pytest.raises(SecretNotFound) as raised:
        DirectoryCredentials(secret)
    assert "AWS_SECRET_ACCESS_KEY cannot be read" in str(raised.value)
    assert "the-secret-key" not in str(raised.value)


def test_the_repr_of_credentials_contains_no_key(secret: Path) -> None:
    assert repr(DirectoryCredentials(secret)) == f"DirectoryCredentials({os.fspath(secret)!r})"
