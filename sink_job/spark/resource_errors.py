"""Errors of a machine that lacks memory or disk, of any process of a sink. Neither the program nor the manifest is
wrong, and a retry helps.

The driver sees them in three ways: raised in its own process, returned by a worker as a row, or as the message of a
failed job. All three have the same error and exit code.
"""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from sink_job.api.errors import ConfigurationError, OutOfMemory, SinkError, TransientError

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MAX_CAUSES: Final = 10
_NO_MEMORY: Final = re.compile(
    r"OutOfMemoryError|Could not reserve enough space|insufficient memory|Cannot allocate memory|unable to allocate|"
    r"failed to map|Not enough space",
    re.IGNORECASE,
)
_SILENT_LAUNCHER: Final = "bad array subscript"
"""What Spark's script reports about a JVM that has ended without a word. Others report their errors before it."""
_SHELL_SIGNAL: Final = 128
"""A shell adds it to the number of the signal that has ended its command."""


def disk_full(shown: str) -> TransientError:
    """The error for a local disk that is full or limited. `shown`: what the system has reported."""
    return TransientError(
        f"the local disk of a task is full or limited ({shown}). No data is lost: increase the ephemeral storage "
        "of the pods, or set TMPDIR to a larger disk on a laptop, and start the sink again"
    )


def resource_error(error: BaseException) -> SinkError | None:
    """The error for an exception that was caused by a full disk or by a lack of memory; None for any other one."""
    for each in _causes(error):
        if isinstance(each, OSError) and each.errno in _FULL:
            return disk_full(each.strerror or str(each))
        if isinstance(each, MemoryError | pa.ArrowMemoryError) or (
            isinstance(each, OSError) and each.errno == errno.ENOMEM
        ):
            return OutOfMemory("a process of the sink has no memory left; no data is lost")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def jvm_error(code: int | None, output: str) -> SinkError:
    """The error for a JVM that has ended before it was of use. `code`: its exit code, negative for a signal; None if it
    is not known. `output`: what it has written."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if code is not None and (code < 0 or code > _SHELL_SIGNAL):
        number = -code if code < 0 else code - _SHELL_SIGNAL
        return OutOfMemory(
            f"Spark's JVM was ended by {_signal_name(number)} when it started, probably for lack of memory"
        )
    if lines and all(_SILENT_LAUNCHER in line for line in lines):
        return OutOfMemory("the JVM that prepares Spark's was killed when it started, probably for lack of memory")
    if lack := next((line for line in lines if _NO_MEMORY.search(line)), None):
        return OutOfMemory(f"Spark's JVM did not get its memory when it started: {lack}")
    shown = f": {lines[-1]}" if lines else ""
    return ConfigurationError(f"Spark's JVM does not start; check that Java 17 or newer is installed{shown}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
