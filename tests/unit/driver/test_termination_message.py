"""The termination message: its file and its content."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.api.errors import AccessDenied
from sink_job.api.report import FinalReport
from sink_job.driver import termination_message
from sink_job.driver.secret_registry import SECRETS


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "log"
    monkeypatch.setenv(termination_message.PATH, str(path))
    return path


def test_a_failure_is_written_as_a_final_report(file: Path) -> None:
    file.touch()
    termination_message.failed(AccessDenied("S3 says no"))
    failure = FinalReport.model_validate_json(file.read_text()).failure
    assert failure is not None
    assert (failure.reason, failure.message, failure.exit_code) == ("AccessDenied", "S3 says no", 7)


def test_a_message_of_the_command_is_not_replaced(file: Path) -> None:
    file.touch()
    termination_message.write("its own word")
    termination_message.failed(AccessDenied("S3 says no"))
    assert file.read_text() == "its own word"


def test_without_a_file_of_the_kubelet_nothing_is_written(file: Path) -> None:
    termination_message.write("no kubelet listens")
    termination_message.failed(AccessDenied("S3 says no"))
    assert not file.exists()


def test_a_secret_is_redacted_in_the_termination_message(file: Path) -> None:
    file.touch()
    SECRETS.hide(["hunter2hunter2"])
    termination_message.failed(AccessDenied("hunter2hunter2 is rejected"))
    assert "hunter2" not in file.read_text()
