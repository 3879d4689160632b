"""A lack of memory or disk is transient, in whichever process and way it shows."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sink_job.api.errors import ConfigurationError, OutOfMemory, SinkError, TransientError
from sink_job.spark import session, task
from sink_job.spark.conf import SparkSettings
from sink_job.spark.resource_errors import jvm_error, resource_error


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_transient(number: int) -> None:
    found = resource_error(OSError(number, "no room"))
    assert type(found) is TransientError
    assert found.exit_code == 75
    assert "local disk" in str(found)
    assert "no room" in str(found)


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc"), OSError(errno.ENOMEM, "no memory")])
def test_a_lack_of_memory_is_transient(error: BaseException) -> None:
    found = resource_error(error)
    assert isinstance(found, OutOfMemory)
    assert found.exit_code == 75


def test_the_cause_of_an_error_counts() -> None:
    assert resource_error(raised(ValueError("x"), OSError(errno.ENOSPC, "no room"))) is not None
    assert resource_error(raised(ValueError("x"), KeyError("y"))) is None


def test_other_errors_are_no_lack_of_resources() -> None:
    assert resource_error(OSError(errno.EACCES, "denied")) is None
    assert resource_error(ValueError("No space left on device")) is None


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no room"), MemoryError()])
def test_a_worker_returns_it_as_the_same_error(error: Exception) -> None:
    failure = pickle.loads(pickle.dumps(task._failure(error)))
    assert isinstance(failure.error, TransientError)
    assert str(failure.error) == str(resource_error(error))


@pytest.mark.parametrize("code", [-9, 137, -15])
def test_a_jvm_that_a_signal_has_ended_is_transient(code: int) -> None:
    found = jvm_error(code, "")
    assert isinstance(found, OutOfMemory)
    assert "SIGKILL" in str(found) or "SIGTERM" in str(found)


@pytest.mark.parametrize(
    "output",
    [
        "Error occurred during initialization of VM\nCould not reserve enough space for 4194304KB object heap\n",
        "# There is insufficient memory for the Java Runtime Environment to continue.",
        "java.lang.OutOfMemoryError: unable to create native thread",
    ],
)
def test_a_jvm_without_memory_is_transient(output: str) -> None:
    assert isinstance(jvm_error(1, output), OutOfMemory)


def test_a_jvm_that_does_not_start_otherwise_is_the_users() -> None:
    found = jvm_error(1, "Error: Could not find or load main class x\n")
    assert isinstance(found, ConfigurationError)
    assert str(found).endswith("is installed: Error: Could not find or load main class x")


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Replaces the program java by a script."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)

    def replaced_by(script: str) -> None:
        program = home / "bin" / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    monkeypatch.setenv("JAVA_HOME", str(home))
    return replaced_by


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        pytest.param("kill -9 $$", OutOfMemory, id="killed"),
        pytest.param("echo 'x: No such file' >&2; exit 1", ConfigurationError, id="no program"),
        pytest.param("echo 'Could not reserve enough space for object heap' >&2; exit 1", OutOfMemory, id="no memory"),
        pytest.param("echo 'Unrecognized option: -x' >&2; exit 1", ConfigurationError, id="another Java"),
    ],
)
def test_a_session_ends_with_the_error_of_its_jvm(
    script: str, kind: type[SinkError], java: Callable[[str], None], tmp_path: Path
) -> None:
    java(script)
    settings = SparkSettings(app_name="sink", jars=[], cores=1, heap=512 << 20, temp_dir=tmp_path)
    with pytest.raises(kind), session.session(settings):
        pass
