"""The Spark configuration, and the files of a session."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sink_job.spark import session
from sink_job.spark.conf import SOCKET_DIR_LENGTH


def test_the_directory_of_a_killed_process_is_removed_although_its_process_id_is_in_use(
    tmp_path: Path,
) -> None:
    number = os.getpid()
    orphaned, foreign = tmp_path / f"s3sink-spark-{number}-abc", tmp_path / "s3sink-spark-x-abc"
    for folder in (orphaned, foreign):
        folder.mkdir()
        (folder / "file").touch()
    with session._work_dir(tmp_path) as own:
        assert own.is_dir()
        assert (orphaned.exists(), foreign.exists()) == (False, True)
    assert not own.exists()


def test_the_directory_of_a_killed_process_is_removed_at_the_next_start(tmp_path: Path) -> None:
    code = "import os, pathlib, sys; from sink_job.spark import session\n"
    code += "with session._work_dir(pathlib.Path(sys.argv[1])) as folder: os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    [orphaned] = tmp_path.iterdir()
    with session._work_dir(tmp_path):
        assert not orphaned.exists()


def test_the_directory_of_a_running_process_is_kept(tmp_path: Path) -> None:
    with session._work_dir(tmp_path) as first, session._work_dir(tmp_path):
        assert first.is_dir()


@pytest.mark.parametrize("name", ["x" * 60, "ü" * 30])
def test_sockets_are_in_a_short_directory_whatever_the_temporary_directories(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / name
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with session._work_dir(None) as folder, session._socket_dir(folder) as sockets:
        assert folder.parent == long
        assert len(bytes(sockets)) <= SOCKET_DIR_LENGTH
    assert not sockets.exists()


def test_sockets_are_in_the_directory_of_the_session_if_it_is_short(tmp_path: Path) -> None:
    short = Path("/work/x")
    with session._socket_dir(short) as sockets:
        assert sockets == short
