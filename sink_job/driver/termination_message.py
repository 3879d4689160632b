"""The termination message for Kubernetes. It stays in the pod's status after the end of the process.

The kubelet creates the file in a container. Outside of a container the file does not exist, and nothing is written.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from sink_job.api.report import Failure, FinalReport
from sink_job.driver.secret_registry import SECRETS

PATH: Final = "S3SINK_TERMINATION_LOG"
"""Environment variable with another path than the default of Kubernetes."""

_DEFAULT: Final = "/dev/termination-log"

_log = logging.getLogger(__name__)


def write(message: str) -> None:
    """Writes the message without secrets, and replaces a previous one."""
    path = Path(os.environ.get(PATH) or _DEFAULT)
    if not path.is_file():
        return
    try:
        path.write_text(SECRETS(message), encoding="utf-8")
    except OSError as error:
        _log.warning("cannot write the termination message to %s: %s", path, error.strerror)


def failed(error: BaseException) -> None:
    """Writes the failure of a command, unless the command has written a message."""
    path = Path(os.environ.get(PATH) or _DEFAULT)
    if path.is_file() and path.stat().st_size == 0:
        write(FinalReport(failure=Failure.of(error)).termination_message())
