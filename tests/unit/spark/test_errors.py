"""The mapping of the messages of failed Spark jobs to errors."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError

from sink_job.api.errors import ConfigurationError, DataLoss, InvalidCredentials, OutOfMemory, SinkError, TransientError
from sink_job.spark.errors import job_error

LOST_TASK = (
    "An error occurred while calling o1.getResult.\n"
    ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
    "\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)\n"
    "Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 4.0 failed 4 times, "
    "most recent failure: Lost task 1.3 in stage 4.0 (TID 26) (192.0.2.2 executor driver): {}\n"
    "\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
    "\nDriver stacktrace:\n"
)
LOSS = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "/x/sink_job/spark/frames.py", line 1, in next\n'
    "sink_job.spark.frames.ReadError: the range from offset 2 of partition a-b-1 cannot be read\n"
    "Caused by: org.apache.kafka.clients.consumer.{}: Fetch position FetchPosition{{offset=7}} is out of range for "
    "partition a-b-1\n"
)
POSITION = "org.apache.kafka.common.errors.TimeoutException: Timeout of 4000ms expired before the position"
SASL = "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed for hunter22"
PYTHON = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    "  File \"x.py\", line 1, in f\n    import nothing\nModuleNotFoundError: No module named 'nothing'\n"
)


def error_of(thrown: str) -> SinkError:
    error = Exception(LOST_TASK.format(thrown))
    return job_error(error, servers="kafka:9092", redact=lambda text: text.replace("hunter22", "[hidden]"))


@pytest.mark.parametrize("name", ["OffsetOutOfRangeException", "LogTruncationException"])
def test_lost_records_are_data_loss_with_topic_partition_and_offset(name: str) -> None:
    error = error_of(LOSS.format(name))
    assert isinstance(error, DataLoss)
    assert str(error) == "Kafka no longer holds records of a-b-1 in the range from offset 2"


def test_a_broker_without_an_answer_is_a_transient_error() -> None:
    error = error_of(POSITION)
    assert isinstance(error, TransientError)
    assert "kafka:9092" in str(error)


def test_the_message_of_a_failed_authentication_contains_no_secret() -> None:
    error = error_of(SASL)
    assert isinstance(error, InvalidCredentials)
    assert "[hidden]" in str(error)


@pytest.mark.parametrize(
    "message", ["Python worker exited unexpectedly (crashed)", "Python worker failed to connect back"]
)
def test_a_killed_worker_is_a_transient_error(message: str) -> None:
    assert isinstance(error_of(f"org.apache.spark.SparkException: {message}"), TransientError)


@pytest.mark.parametrize(
    "message",
    [
        "java.io.IOException: No space left on device",
        "java.io.IOException: File too large",
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 122] Disk quota exceeded",
        "OSError: [Errno 27] File too large",
    ],
)
def test_a_full_local_disk_is_a_transient_error(message: str) -> None:
    error = error_of(f"org.apache.spark.SparkException: Job aborted\nCaused by: {message}")
    assert type(error) is TransientError
    assert "the local disk of a task is full" in str(error)


def test_a_jvm_that_is_out_of_memory_is_a_configuration_error() -> None:
    assert isinstance(error_of("java.lang.OutOfMemoryError: Java heap space"), ConfigurationError)


def test_a_jvm_that_has_exited_is_a_transient_error() -> None:
    error = job_error(Py4JNetworkError("Answer from Java side is empty"), servers="k", redact=str)
    assert isinstance(error, TransientError)


def test_the_message_of_a_python_exception_is_its_last_line() -> None:
    error = error_of(PYTHON)
    assert type(error) is SinkError
    assert str(error) == "Spark: ModuleNotFoundError: No module named 'nothing'"


def test_the_message_of_another_exception_is_that_of_the_innermost_one() -> None:
    assert str(error_of("java.lang.IllegalStateException: odd")) == "Spark: IllegalStateException: odd"


LOST = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "3.0 (TID 7) (10.244.0.9 executor 4): ExecutorLostFailure (executor 4 exited caused by one of the running tasks) "
    "Reason: {}\nDriver stacktrace:"
)


@pytest.mark.parametrize(
    "reason", ["The executor with id 4 exited with exit code 137(SIGKILL, possible container OOM).", "OOMKilled"]
)
def test_an_executor_that_was_killed_by_the_kernel_is_out_of_memory(reason: str) -> None:
    error = error_of(LOST.format(reason))
    assert isinstance(error, OutOfMemory)
    assert reason in str(error)


def test_an_executor_that_was_lost_for_another_reason_is_a_transient_error() -> None:
    error = error_of(LOST.format("The executor with id 4 was deleted by a user or the framework."))
    assert type(error) is TransientError
    assert "deleted by a user" in str(error)


def test_a_worker_that_was_killed_is_out_of_memory() -> None:
    assert isinstance(
        error_of("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"), OutOfMemory
    )
