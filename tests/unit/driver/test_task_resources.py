"""The memory of a run after an increase of the container's limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.driver.task_resources import ContainerMemory
from sink_job.engine.container_memory import memory_limit

V1, V2 = "memory/memory.limit_in_bytes", "memory.max"


def say(root: Path, file: str, text: str) -> None:
    (root / file).parent.mkdir(exist_ok=True)
    (root / file).write_text(f"{text}\n")


@pytest.mark.parametrize("file", [V1, V2])
def test_the_limit_is_read_from_cgroup_v1_and_v2(tmp_path: Path, file: str) -> None:
    say(tmp_path, file, "1073741824")
    assert memory_limit(tmp_path) == 1 << 30


def test_no_limit_is_none(tmp_path: Path) -> None:
    assert memory_limit(tmp_path) is None
    say(tmp_path, V2, "max")
    assert memory_limit(tmp_path) is None


def test_an_increased_limit_is_the_current_memory(tmp_path: Path) -> None:
    say(tmp_path, V1, str(1 << 30))
    memory = ContainerMemory(1 << 30, tmp_path)
    assert memory.current() is None
    say(tmp_path, V1, str(3 << 30))
    assert memory.current() == 3 << 30


def test_a_limit_other_than_the_argument_is_not_followed(tmp_path: Path) -> None:
    say(tmp_path, V1, str(8 << 30))
    memory = ContainerMemory(1 << 30, tmp_path)
    say(tmp_path, V1, str(9 << 30))
    assert memory.current() is None


def test_without_the_argument_the_limit_is_not_followed(tmp_path: Path) -> None:
    say(tmp_path, V1, str(8 << 30))
    assert ContainerMemory(None, tmp_path).current() is None
