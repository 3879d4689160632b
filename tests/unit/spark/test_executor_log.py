"""What is read from Spark's log about executor pods. The lines are those of Spark 4.2."""

from __future__ import annotations

import pytest

from sink_job.spark.executor_log import RETENTION_S, ExecutorLog, failure_limit

QUOTA = 'pods "flights-1-exec-{n}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2'
STATUS = ". Received status: Status(apiVersion=v1, code=403, kind=Status, message=the same, reason=Forbidden)."


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def read(log: ExecutorLog, *lines: str) -> list[bool]:
    return [log.read(line) for line in lines]


def rejected(number: int, message: str = QUOTA) -> tuple[str, str, str]:
    failure = (
        "io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: POST at: https://10.0.0.1/pods"
    )
    return (
        f"ERROR ExecutorPodsAllocator: Failed to create executor pod {number}. Total failures: {number}",
        f"{failure}. Message: {message.format(n=number)}{STATUS}",
        "\tat io.fabric8.kubernetes.client.dsl.internal.OperationSupport.waitForResult(OperationSupport.java:507)",
    )


def test_a_rejected_pod_is_reported_with_the_words_of_the_api_server() -> None:
    log = ExecutorLog(3)
    read(log, *rejected(2))
    assert log.rejection == QUOTA.format(n=2)


def test_a_webhook_that_fails_is_reported_with_the_words_of_the_api_server() -> None:
    log = ExecutorLog(3)
    read(log, *rejected(2, 'Internal error occurred: failed calling webhook "a.b": connect: connection refused'))
    assert log.rejection == 'Internal error occurred: failed calling webhook "a.b": connect: connection refused'


POLICY = """admission webhook "validate.kyverno.svc-fail" denied the request:

resource Pod/data/flights-1-exec-2 was blocked due to the following policies

require-team:
  check-team: 'validation error: the label team is required'"""
IN_ONE_LINE = " ".join(POLICY.split())


def policy(number: int) -> list[str]:
    """The lines of a rejection with a message of several lines. The status repeats the message."""
    failed, exception, trace = rejected(number)
    quoted = exception.replace(QUOTA.format(n=number), POLICY).replace("the same", POLICY)
    return [failed, *quoted.split("\n"), trace]


def test_a_message_of_several_lines_is_reported_in_one() -> None:
    log = ExecutorLog(3)
    read(log, *policy(2))
    assert log.rejection == IN_ONE_LINE


@pytest.mark.parametrize("following", ["\tat io.fabric8.kubernetes.client.X.y(X.java:1)", "INFO Other: x"])
def test_a_message_of_several_lines_without_a_status_ends_before_the_trace_and_the_next_log_entry(
    following: str,
) -> None:
    log = ExecutorLog(3)
    lines = policy(2)
    end = next(index for index, line in enumerate(lines) if "Received status" in line)
    read(log, *lines[:end], lines[end].partition(". Received status")[0], following, "INFO Other: y")
    assert log.rejection == IN_ONE_LINE


@pytest.mark.parametrize("length", [780, 795])
@pytest.mark.parametrize(
    "failure", [rejected(2, "{{long}}"), ("", "java.io.IOException: {long}", "\tat X.y(X.java:1)")]
)
def test_no_part_of_a_secret_at_the_end_of_a_cut_message_is_reported_or_logged(
    caplog: pytest.LogCaptureFixture, failure: tuple[str, str, str], length: int
) -> None:
    log = ExecutorLog(3, redact=lambda text: text.replace("swordfish-and-more", "***"))
    read(log, rejected(2)[0], failure[1].replace("{long}", "x" * length + " swordfish-and-more"), failure[2])
    assert caplog.records
    assert "sword" not in f"{log.rejection}{caplog.text}"


def test_a_failed_executor_that_is_logged_after_a_cut_message_counts() -> None:
    ended: list[int] = []
    log = ExecutorLog(1)
    log.end = lambda: ended.append(1)
    read(log, *policy(2)[:3], "WARN ExecutorPodsLifecycleManager: 2 new failed executors.")
    assert ended == [1]


def test_a_message_without_an_end_is_reported() -> None:
    log = ExecutorLog(3)
    read(log, *policy(2)[:2], *["line"] * 100)
    assert str(log.rejection).startswith('admission webhook "validate.kyverno.svc-fail" denied the request: line line')


def test_a_repeated_rejection_keeps_its_message_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log = ExecutorLog(3)
    for number in range(2, 9):
        read(log, *rejected(number))
    assert log.rejection == QUOTA.format(n=2), "the status of the sink does not change each second"
    assert [each.getMessage() for each in caplog.records if "rejects" in each.getMessage()] == [
        f"the API server rejects an executor pod: {QUOTA.format(n=2)}"
    ]


def test_the_line_of_a_rejection_is_no_message_of_its_own() -> None:
    assert read(ExecutorLog(3), *rejected(2))[0] is False
    assert read(ExecutorLog(3), "ERROR Other: x") == [True]


def test_another_rejection_replaces_the_message() -> None:
    log = ExecutorLog(3)
    read(log, *rejected(2), *rejected(3, "admission webhook denied the request: no team label"))
    assert log.rejection == "admission webhook denied the request: no team label"


def test_a_rejection_that_is_not_repeated_ends() -> None:
    clock = Clock()
    log = ExecutorLog(3, clock=clock)
    read(log, *rejected(2))
    clock.now += RETENTION_S + 1
    assert log.rejection is None


def test_an_api_server_that_does_not_answer_rejects_nothing() -> None:
    log = ExecutorLog(3)
    read(log, rejected(2)[0], "java.io.IOException: Connection refused")
    assert log.rejection is None


def test_rejections_do_not_count_as_failed_executors() -> None:
    ended: list[int] = []
    log = ExecutorLog(3)
    log.end = lambda: ended.append(1)
    for number in range(100):
        read(log, *rejected(number))
    assert not ended


def test_more_failed_executors_than_the_limit_end_the_application_once() -> None:
    ended: list[int] = []
    log = ExecutorLog(3)
    log.end = lambda: ended.append(1)
    failed = "WARN ExecutorPodsLifecycleManager: {} new failed executors."
    read(log, failed.format(1), failed.format(2))
    assert not ended
    read(log, failed.format(1), failed.format(1))
    assert ended == [1]


FAILED = "WARN ExecutorPodsLifecycleManager: {} new failed executors."


def fails(log: ExecutorLog, executors: int) -> bool:
    """Whether the application ends by this number of further failed executors."""
    ended: list[int] = []
    log.end = lambda: ended.append(1)
    read(log, FAILED.format(executors))
    return bool(ended)


def test_more_executors_have_a_higher_limit() -> None:
    log = ExecutorLog(failure_limit({}, 1))
    log.set_limit(failure_limit({}, 8))
    assert not fails(log, 16)
    assert fails(log, 1)


def test_fewer_executors_have_a_lower_limit() -> None:
    log = ExecutorLog(failure_limit({}, 8))
    log.set_limit(failure_limit({}, 1))
    assert not fails(log, 3)
    assert fails(log, 1)


def test_earlier_failures_count_in_proportion_to_the_limit_after_a_change_of_the_number() -> None:
    log = ExecutorLog(failure_limit({}, 8))
    assert not fails(log, 11)
    log.set_limit(failure_limit({}, 1))
    assert not fails(log, 1)
    assert fails(log, 1)


def test_a_change_of_the_number_alone_ends_nothing() -> None:
    log = ExecutorLog(failure_limit({}, 8))
    assert not fails(log, 16)
    log.set_limit(failure_limit({}, 1))
    assert not fails(log, 0)
    assert fails(log, 1)


def test_the_limit_is_that_of_spark() -> None:
    assert failure_limit({}, 1) == 3
    assert failure_limit({}, 5) == 10


@pytest.mark.parametrize("name", ["spark.executor.maxNumFailures", "spark.executor.failuresValidityInterval"])
def test_with_a_limit_of_the_user_spark_itself_counts(name: str) -> None:
    assert failure_limit({name: "7"}, 1) is None
