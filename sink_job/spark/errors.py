"""What a failed Spark job says, as errors of the domain: the one place that reads Spark's messages."""

from __future__ import annotations

import re
from collections.abc import Callable

from py4j.protocol import Py4JNetworkError

from sink_job.api.errors import ConfigurationError, DataLoss, OutOfMemory, SinkError, TransientError
from sink_job.kafka.errors import JavaThrowable, domain_error, is_known

_CLASS = r"((?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error))"
_IN_TASK = re.compile(r"\(TID \d+\) \([^)]*\): ")  # between what the job and what its last task threw
_THROWN = re.compile(rf"^(?:Caused by)?: {_CLASS}(?:: (.*))?$", re.MULTILINE)
_LOST = re.compile(r"in offset (\[-?\d+, -?\d+\)) for topic partition (\S+)|offset (-?\d+)[^\n]*?partition (\S+)")
_TRACE_END = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration)\b.*)$", re.MULTILINE)
_LOSSES = ("Some data may have been lost", "OffsetOutOfRangeException")
_EXECUTOR_LOST = re.compile(r"ExecutorLostFailure \(.*?\) Reason: ([^\n]*)")
_KILLED = re.compile(r"exit code 137|OOMKilled|OOM\b")
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded|(?:IOException|OSError)[^\n]*File too large")
_WORKER_GONE = ("Python worker exited unexpectedly", "Python worker failed to connect back")


def job_error(error: Exception, *, servers: str, redact: Callable[[str], str]) -> SinkError:
    """The domain error for what a Spark action raised: a sentence, without a stack and without a secret.

    `servers`: the brokers that the job read from.
    """
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return TransientError("Spark's JVM has ended unexpectedly")
    text = redact(str(error))
    if any(phrase in text for phrase in _LOSSES):
        return DataLoss(_loss(text))
    if any(phrase in text for phrase in _WORKER_GONE):
        return OutOfMemory("a Python worker of Spark was killed, most likely for lack of memory")
    if lost := _EXECUTOR_LOST.search(text):
        if _KILLED.search(lost[1]):
            return OutOfMemory(f"an executor was killed, most likely for lack of memory: {lost[1]}")
        return TransientError(f"an executor was lost, more often than a task is tried: {lost[1]}")
    if full := _DISK_FULL.search(text):
        return TransientError(
            f"the local disk of a task is full or limited ({full[0]}): give the pods, or TMPDIR on a laptop, more room "
            "for what tasks spill. Nothing is lost"
        )
    if "java.lang.OutOfMemoryError" in text:
        return ConfigurationError("Spark's JVM ran out of memory; give it more, or lower spec.rounds.maxBytes")
    chain = [JavaThrowable.of(name, message or "") for name, message in _THROWN.findall(_IN_TASK.sub("\n: ", text))]
    if known := [thrown for thrown in chain if is_known(thrown)]:
        return domain_error(known, doing="read records", servers=servers)
    return SinkError(f"Spark: {_last_line(text, chain)}")


def _loss(text: str) -> str:
    """Kafka's partition and offsets out of the reader's message."""
    found = _LOST.search(text)
    if not found:
        return "Kafka no longer holds records that were to be read"
    offsets, partition = (found[1], found[2]) if found[2] else (found[3], found[4])
    return f"Kafka no longer holds records of {partition.rstrip('.,')} that were to be read: offsets {offsets}"


def _last_line(text: str, chain: list[JavaThrowable]) -> str:
    """What a person would look for: the end of a Python traceback, else the innermost Java exception."""
    if "Traceback (most recent call last)" in text:
        trace = re.split(r"^\tat ", text[text.rindex("Traceback (most recent call last)") :], maxsplit=1, flags=re.M)[0]
        if lines := _TRACE_END.findall(trace):
            return str(lines[-1]).strip()
    if chain:
        return f"{chain[-1].name}: {chain[-1].message}"
    return text.strip().partition("\n")[0] or "the job failed"
