"""The Spark configuration, and the files of a session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sink_job.spark import session


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
