"""The Java of commands. Tests with a JVM are in tests/data."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.kafka.jvm import java_binary


def program(folder: Path) -> Path:
    folder.mkdir(parents=True)
    java = folder / "java"
    java.touch(mode=0o755)
    return java


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_home, in_path = program(tmp_path / "home/bin"), program(tmp_path / "path")
    monkeypatch.setenv("PATH", str(in_path.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_binary() == str(in_home)
    monkeypatch.delenv("JAVA_HOME")
    assert java_binary() == str(in_path)


def test_without_java_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="no java in the PATH: install Java 17"):
        java_binary()


def test_a_wrong_java_home_is_named_also_if_the_path_has_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "path").parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"no java in {tmp_path}/bin: fix JAVA_HOME"):
        java_binary()
