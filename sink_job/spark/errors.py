"""Maps the messages of failed Spark jobs to the errors of this project."""

from __future__ import annotations

import re
from collections.abc import Callable

from py4j.protocol import Py4JNetworkError

from sink_job.api.errors import ConfigurationError, DataLoss, OutOfMemory, SinkError, TransientError
from sink_job.kafka.errors import JavaThrowable, domain_error, is_known
from sink_job.spark.resource_errors import disk_full

_CLASS = r"((?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error))"
_IN_TASK = re.compile(r"\(TID \d+\) \([^)]*\): ")  # separates the job's exception from that of its last task
_THROWN = re.compile(rf"^(?:Caused by)?: {_CLASS}(?:: (.*))?$", re.MULTILINE)
_LOST = re.compile(r"offset (-?\d+)[^\n]*?partition (\S+)")
_TRACE_END = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration)\b.*)$", re.MULTILINE)
_LOSSES = ("OffsetOutOfRangeException", "LogTruncationException")
_EXECUTOR_LOST = re.compile(r"ExecutorLostFailure \(.*?\) Reason: ([^\n]*)")
_KILLED = re.compile(r"exit code 137|OOMKilled|OOM\b")
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded|(?:IOException|OSError)[^\n]*File too large")
_WORKER_GONE = ("Python worker exited unexpectedly", "Python worker failed to connect back")


def job_error(error: Exception, *, servers: str, redact: Callable[[str], str]) -> SinkError:
    """The error for an exception of a Spark action. Its message has no stack trace and no secret.

    `servers`: the brokers of the job. `redact`: removes secrets.
    """
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return TransientError("Spark's JVM has ended unexpectedly")
    text = redact(str(error))
    if any(phrase in text for phrase in _LOSSES):
        return DataLoss(_loss(text))
    if any(phrase in text for phrase in _WORKER_GONE):
        return OutOfMemory("a Python worker of Spark was killed, probably because it was out of memory")
    if lost := _EXECUTOR_LOST.search(text):
        if _KILLED.search(lost[1]):
            return OutOfMemory(f"an executor was killed, probably because it was out of memory: {lost[1]}")
        return TransientError(f"an executor was lost in each attempt of a task: {lost[1]}")
    if full := _DISK_FULL.search(text):
        return disk_full(full[0])
    if "java.lang.OutOfMemoryError" in text:
        return ConfigurationError("Spark's JVM is out of memory: increase its memory, or lower spec.rounds.maxBytes")
    chain = [JavaThrowable.of(name, message or "") for name, message in _THROWN.findall(_IN_TASK.sub("\n: ", text))]
    if known := [thrown for thrown in chain if is_known(thrown)]:
        return domain_error(known, doing="read records", servers=servers)
    return SinkError(f"Spark: {_last_line(text, chain)}")


def _loss(text: str) -> str:
    """A message with the topic-partition and the start of the range of the reader's message."""
    found = _LOST.search(text)
    if not found:
        return "Kafka no longer holds records of the round"
    return f"Kafka no longer holds records of {found[2].rstrip('.,')} in the range from offset {found[1]}"


def _last_line(text: str, chain: list[JavaThrowable]) -> str:
    """The last line of the Python traceback, else the innermost Java exception."""
    if "Traceback (most recent call last)" in text:
        trace = re.split(r"^\tat ", text[text.rindex("Traceback (most recent call last)") :], maxsplit=1, flags=re.M)[0]
        if lines := _TRACE_END.findall(trace):
            return str(lines[-1]).strip()
    if chain:
        return f"{chain[-1].name}: {chain[-1].message}"
    return text.strip().partition("\n")[0] or "the job failed"
