"""The last word to Kubernetes: the termination message, which stays with the pod when its process and log are gone.

The file is there in a container alone, made by the kubelet; elsewhere nothing is written.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from sink_job.api.report import Failure, FinalReport
from sink_job.driver.secret_registry import SECRETS

PATH: Final = "S3SINK_TERMINATION_LOG"
"""Names another file than Kubernetes' usual one."""

_USUAL: Final = "/dev/termination-log"

_log = logging.getLogger(__name__)


def write(message: str) -> None:
    """Writes the message, without secrets, in place of any before."""
    path = Path(os.environ.get(PATH) or _USUAL)
    if not path.is_file():
        return
    try:
        path.write_text(SECRETS(message), encoding="utf-8")
    except OSError as error:
        _log.warning("the termination message cannot be written to %s: %s", path, error.strerror)


def failed(error: BaseException) -> None:
    """Writes how a command failed, unless it has said so itself."""
    path = Path(os.environ.get(PATH) or _USUAL)
    if path.is_file() and path.stat().st_size == 0:
        write(FinalReport(failure=Failure.of(error)).termination_message())
