"""The memory limit of the container, in both versions of control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.engine.container_memory import memory_limit


def cgroup(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / {"v2": "memory.max", "v1": "memory/memory.limit_in_bytes"}[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_limit_is_read_in_either_version(tmp_path: Path, version: str) -> None:
    assert memory_limit(cgroup(tmp_path, **{version: "1073741824\n"})) == 1 << 30


def test_a_group_without_a_limit_has_none(tmp_path: Path) -> None:
    assert memory_limit(cgroup(tmp_path, v2="max\n")) is None


def test_the_second_version_decides_where_both_are_present(tmp_path: Path) -> None:
    assert memory_limit(cgroup(tmp_path, v2="max", v1="5")) is None
    assert memory_limit(cgroup(tmp_path, v2="7", v1="5")) == 7


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "absent") is None
