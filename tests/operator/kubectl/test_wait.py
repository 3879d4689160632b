"""`kubectl s3sink`: views, annotations of actions, and errors. Without a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl import actions, command, view
from s3sink_operator.kubectl.actions import ActionNotAllowed
from s3sink_operator.kubectl.client import parse_error
from s3sink_operator.kubectl.formatting import format_age, format_duration, format_table
from s3sink_operator.kubectl.wait import WaitResult, wait_for
from s3sink_operator.types import Json, annotation, to_timestamp
from sink_job.api.enums import ResetTo
from sink_job.api.errors import BucketNotFound
from tests.argocd.test_customization import ACTIONS, run
from tests.operator.fake_cluster import MINUTE, START, Cluster, document, report, running

# -- what is shown -----------------------------------------------------------------------------------------------------


def test_a_running_sink_is_one_line_with_its_lag_and_memory() -> None:
    cluster = running()
    cluster.wait(MINUTE)
    cluster.report = report(now=cluster.now, lag=1234)
    cluster.converge()
    lines = view.overview([cluster.sink], cluster.now, all_namespaces=True).splitlines()
    assert lines[0].split() == [
        "NAMESPACE", "NAME", "READY", "STATE", "PARTITIONS", "LAG", "BEHIND", "MEMORY", "FAILURES", "AGE", "REASON",
    ]  # fmt: skip
    memory = cluster.status["memory"]["current"]
    assert lines[1].split() == ["data", "flights", "True", "Running", "1", "1,234", "0s", memory, "0", "1m", "Running"]


def test_all_of_a_running_sink_names_the_partitions_that_are_furthest_behind() -> None:
    cluster = running()
    cluster.wait(MINUTE)
    cluster.report = report(now=cluster.now, lag=5)
    cluster.converge()
    text = view.detail(cluster.sink, cluster.now)
    assert text.startswith("data/flights: Running\n")
    assert "Ready:         True for 1m, Running: copying 1 topic-partition" in text
    assert "Lag:           5 records, the oldest is 0s old; observed 0s ago\n" in text
    assert "flights   0           100         100    105   5     0s" in text
    assert "Last failure" not in text


def test_a_failed_sink_shows_the_failure_and_the_next_attempt() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("there is no bucket archive"))
    cluster.converge()
    text = view.detail(cluster.sink, cluster.now)
    assert f"Last failure:  attempt 1, 0s ago, exit code 7: {BucketNotFound.reason}: there is no bucket archive" in text
    assert "Resumes after round 9 of the ledger" in text
    assert "Next attempt:  in 2m" in text
    assert ", after 1 consecutive failure" in text
    assert view.as_data(cluster.sink)["lastFailure"]["reason"] == BucketNotFound.reason


def test_a_requested_restart_is_not_a_failure() -> None:
    cluster = running()
    cluster.annotate({names.RESTART_ANNOTATION: "now"})
    cluster.converge_with_kubelet()
    assert cluster.status["attempts"][1]["reason"] == "RestartRequested"
    assert view.last_failure(view.status_of(cluster.sink)) is None


def test_a_topic_partition_with_few_fields_is_shown() -> None:
    """A status may be of another version of the operator."""
    sink = document() | {"status": {"progress": {"mostLagging": [{"topic": "flights", "partition": 1, "lag": 5}]}}}
    assert "5" in view.detail(sink, START)


def test_a_sink_that_no_operator_reconciled_is_marked() -> None:
    text = view.detail(document(), START)
    assert "no operator has reconciled this sink" in text
    assert view.overview([document()], START, all_namespaces=False).splitlines()[1].split()[-1] == "NotReconciled"


def test_a_status_from_before_an_edit_is_marked() -> None:
    cluster = running()
    cluster.edit(rotation={"flushSize": 7})
    assert "the status is of generation 1, the spec has generation 2" in view.detail(cluster.sink, cluster.now)
    assert view.as_data(cluster.sink)["upToDate"] is False


def test_further_conditions_are_shown_with_their_message() -> None:
    cluster = running()
    cluster.annotate({names.RESET_OFFSETS_ANNOTATION: "{"})
    cluster.converge_with_kubelet()
    lines = view.detail(cluster.sink, cluster.now).splitlines()
    (reported,) = [line for line in lines if line.startswith("OffsetsReset")]
    assert reported.split()[1:3] == ["False", "InvalidRequest"]
    assert cluster.condition("OffsetsReset")["message"] in reported


def test_a_status_with_next_to_nothing_in_it_can_be_shown() -> None:
    """An older or newer operator may report less."""
    for status in ({}, {"observedGeneration": 1}, {"progress": {"phase": "Running"}, "retry": {}, "attempts": [{}]}):
        sink = document() | {"status": status}
        assert view.detail(sink, START)
        assert view.overview([sink], START, all_namespaces=True)
        assert json.dumps(view.as_data(sink))


def test_columns_are_as_wide_as_they_need() -> None:
    assert format_table(["A", "LONG"], [["xyz", "1"], ["x", "2"]]) == "A     LONG\nxyz   1\nx     2"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3661, "1h1m"), (7200, "2h"), (90_000, "1d1h"), (-5, "0s")],
)
def test_a_duration_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


def test_an_age_that_is_not_known_is_a_dash() -> None:
    assert format_age(None, START) == format_age("soon", START) == "-"
    assert format_age(to_timestamp(START - 2 * MINUTE), START) == "2m"


# -- actions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [None, "Running", "Paused", "Stopped"])
@pytest.mark.parametrize("name", ["pause", "resume", "stop"])
def test_an_action_writes_what_the_action_of_argo_cd_of_that_name_writes(name: str, state: str | None) -> None:
    sink = document(state=state)
    sink["metadata"]["annotations"] = {names.STATE_ANNOTATION: "Paused", "theirs": "stays"}
    found: dict[str, actions.Action] = {
        "pause": actions.pause(sink),
        "resume": actions.resume(sink),
        "stop": actions.stop(sink),
    }
    after = sink["metadata"]["annotations"] | found[name].annotations
    expected = run(ACTIONS / name / "action.lua", sink)["metadata"]["annotations"]
    assert {key: value for key, value in after.items() if value is not None} == expected


def waited(cluster: Cluster, action: actions.Action, polls: int = 12, silent: int = 0) -> tuple[WaitResult, str]:
    """The result of waiting for an action, with one reconcile pass of the operator for each poll. The first
    the first `silent` polls get no answer."""
    written = {key: value for key, value in action.annotations.items() if value is not None}
    for removed in action.annotations.keys() - written.keys():
        cluster.sink["metadata"]["annotations"].pop(removed, None)
    cluster.annotate(written)
    before = json.loads(json.dumps(cluster.sink))

    answers = iter([False] * silent)

    def poll() -> tuple[Json, Json | None] | None:
        return (cluster.sink, cluster.driver) if next(answers, True) else None

    def sleep(_: float) -> None:
        cluster.reconcile()
        cluster.kubelet()

    clock: Iterator[int] = iter(range(1000))
    said: list[str] = []
    outcome = wait_for(
        action, before, poll, timeout_s=polls, clock=lambda: next(clock), sleep=sleep, report=said.append
    )
    return outcome.result, outcome.message


def test_waiting_for_a_restart_ends_when_the_new_driver_is_ready() -> None:
    cluster = running()
    action = actions.restart(cluster.sink, "r1")
    assert waited(cluster, action) == (WaitResult.DONE, "")
    assert cluster.driver
    assert annotation(cluster.driver, "s3sink.io/restarted-for") == "r1"


def test_waiting_for_a_restart_is_not_over_while_the_old_driver_is_still_ready() -> None:
    cluster = running()
    action = actions.restart(cluster.sink, "r1")
    assert not action.is_done(cluster.sink, cluster.driver)


@pytest.mark.parametrize("name", ["pause", "stop"])
def test_waiting_for_a_sink_to_halt_ends_when_no_driver_is_left(name: str) -> None:
    cluster = running()
    action = actions.pause(cluster.sink) if name == "pause" else actions.stop(cluster.sink)
    assert waited(cluster, action) == (WaitResult.DONE, "")
    assert cluster.driver is None
    assert waited(cluster, actions.resume(cluster.sink)) == (WaitResult.DONE, "")
    assert cluster.ready == ("True", "Running")


def test_waiting_ends_with_a_failure_that_requires_user_action() -> None:
    cluster = running()
    action = actions.restart(cluster.sink, "r1")
    cluster.annotate({names.RESTART_ANNOTATION: "r1"})
    before = json.loads(json.dumps(cluster.sink))
    cluster.converge()
    cluster.kubelet()
    cluster.fail(BucketNotFound("there is no bucket archive"))
    cluster.converge()
    outcome = wait_for(
        action,
        before,
        lambda: (cluster.sink, cluster.driver),
        timeout_s=9,
        clock=lambda: 0,
        sleep=lambda _: None,
        report=lambda _: None,
    )
    assert outcome.result is WaitResult.FAILED
    assert "there is no bucket archive" in outcome.message


def test_an_api_server_that_does_not_answer_for_a_moment_does_not_end_the_wait() -> None:
    cluster = running()
    assert waited(cluster, actions.restart(cluster.sink, "r1"), silent=3) == (WaitResult.DONE, "")


def test_an_api_server_that_never_answers_ends_the_wait_at_its_time() -> None:
    cluster, clock = running(), iter(range(100))
    outcome = wait_for(
        actions.restart(cluster.sink, "r1"),
        cluster.sink,
        lambda: None,
        timeout_s=5,
        clock=lambda: next(clock),
        sleep=lambda _: None,
        report=lambda _: None,
    )
    assert (outcome.result, outcome.message) == (
        WaitResult.TIMED_OUT,
        "unknown after 5 s: the API server does not answer",
    )


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("Unable to connect to the server: EOF", True),
        ("Error from server (TooManyRequests): wait", True),
        ('Error from server (NotFound): s3sinks.s3sink.io "flights" not found', False),
        ("Error from server (Forbidden): no", False),
    ],
)
def test_transient_errors_are_distinguished_from_permanent_ones(said: str, passes: bool) -> None:
    assert parse_error(said).is_transient is passes


def test_what_had_failed_before_the_action_does_not_end_the_wait() -> None:
    cluster = running()
    cluster.fail(BucketNotFound("there is no bucket archive"))
    cluster.converge()
    assert waited(cluster, actions.restart(cluster.sink, "r1")) == (WaitResult.DONE, "")


def test_waiting_without_an_operator_times_out_with_the_last_condition() -> None:
    cluster = running()
    action = actions.pause(cluster.sink)
    clock = iter(range(100))
    outcome = wait_for(
        action,
        cluster.sink,
        lambda: (cluster.sink, cluster.driver),
        timeout_s=5,
        clock=lambda: next(clock),
        sleep=lambda _: None,
        report=lambda _: None,
    )
    assert outcome.result is WaitResult.TIMED_OUT
    assert outcome.message == "not done after 5 s; Running: copying 1 topic-partition"


def test_actions_without_an_effect_are_rejected() -> None:
    held, going, stopped = running(), running(), document(state="Stopped")
    held.annotate({names.RECONCILE_PAUSED_ANNOTATION: "true"})
    going.delete_sink()
    with pytest.raises(ActionNotAllowed, match=r"reconcile\.s3sink\.io/paused pauses the operator"):
        actions.pause(held.sink)
    with pytest.raises(ActionNotAllowed, match="the sink is being deleted"):
        actions.resume(going.sink)
    with pytest.raises(ActionNotAllowed, match=r"spec\.state is Stopped.*use resume to start it"):
        actions.restart(stopped, "r1")


# -- offsets -----------------------------------------------------------------------------------------------------------


def request(to: ResetTo = ResetTo.EARLIEST, timestamp: str | None = None, *offsets: str) -> Json:
    return actions.reset_request("n1", to=to, on_existing="Fail", timestamp=timestamp, offsets=offsets)


def test_a_reset_request_has_the_format_of_the_spec() -> None:
    assert request(ResetTo.TIMESTAMP, "2025-11-03T10:00:00Z") == {
        "nonce": "n1",
        "to": "Timestamp",
        "onExisting": "Fail",
        "timestamp": 1_762_164_000_000,
    }
    partitions = request(ResetTo.OFFSETS, None, "a:0:5", "b:12:0")["partitions"]
    assert partitions == [{"topic": "a", "partition": 0, "offset": 5}, {"topic": "b", "partition": 12, "offset": 0}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: request(ResetTo.TIMESTAMP, "yesterday"), "--timestamp: yesterday is neither"),
        (lambda: request(ResetTo.TIMESTAMP, "2025-11-03T10:00:00"), "--timestamp: .* is neither"),
        (lambda: request(ResetTo.TIMESTAMP, "0001-01-01T00:00:00+05:00"), "--timestamp: .* is neither"),
        (lambda: request(ResetTo.TIMESTAMP, "9" * 5000), "--timestamp: 9+ is neither"),
        (lambda: request(ResetTo.OFFSETS, None, "flights:0:" + "9" * 5000), "--offset: .* is not TOPIC"),
        (lambda: request(ResetTo.OFFSETS, None, "a:0"), "--offset: a:0 is not TOPIC:PARTITION:OFFSET"),
        (lambda: request(ResetTo.OFFSETS, None, "a:x:1"), "--offset: a:x:1 is not"),
    ],
)
def test_an_invalid_time_or_offset_is_rejected_with_its_flag(given: object, said: str) -> None:
    assert callable(given)
    with pytest.raises(ActionNotAllowed, match=said):
        given()


def test_a_reset_request_is_validated_by_the_parser() -> None:
    stopped = document(state="Stopped")
    with pytest.raises(ActionNotAllowed, match="timestamp"):
        actions.reset_offsets(stopped, request(ResetTo.TIMESTAMP))
    with pytest.raises(ActionNotAllowed, match="partitions"):
        actions.reset_offsets(stopped, request(ResetTo.EARLIEST, None, "a:0:1"))


def test_offsets_are_reset_only_while_the_sink_is_stopped() -> None:
    with pytest.raises(ActionNotAllowed, match="kubectl s3sink stop flights --wait"):
        actions.reset_offsets(document(), request())
    written = actions.reset_offsets(document(state="Stopped"), request()).annotations
    assert json.loads(written[names.RESET_OFFSETS_ANNOTATION] or "") == {
        "nonce": "n1",
        "to": "Earliest",
        "onExisting": "Fail",
    }


# -- rejections --------------------------------------------------------------------------------------------------------


def test_a_verb_that_is_missing_is_named() -> None:
    said = (
        'Error from server (Forbidden): s3sinks.s3sink.io "flights" is forbidden: User "eve" cannot patch resource '
        '"s3sinks" in API group "s3sink.io" in the namespace "data"'
    )
    error = parse_error(said)
    assert error.reason == "Forbidden"
    assert 'you need the verb "patch" on s3sinks.s3sink.io' in str(error)


def test_the_error_without_the_crd_says_what_to_install() -> None:
    assert "install the chart" in str(parse_error('error: the server doesn\'t have a resource type "s3sinks"\n'))


def test_only_the_error_of_the_last_attempt_is_shown() -> None:
    said = 'E1121 17:38:33.521988   10129 memcache.go:265] "Unhandled Error"\nThe connection to the server was refused'
    assert str(parse_error(said)) == "The connection to the server was refused"


def test_a_missing_kubectl_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBECTL", raising=False)
    assert command.main(["status"]) == 1
    assert "kubectl not found" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["reset-offsets", "flights"], ["pause"], ["restart", "a", "--timeout", "soon"]])
def test_a_wrong_command_line_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert "usage: kubectl s3sink" in capsys.readouterr().err


@pytest.mark.parametrize(("to", "existing"), [("Earliest", "NewPrefix"), ("earliest", "newprefix")])
def test_the_values_of_a_reset_are_those_of_the_manifest_in_any_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, to: str, existing: str
) -> None:
    with_answer(monkeypatch, tmp_path, document(state="Stopped"))
    assert command.main(["reset-offsets", "flights", "--to", to, "--on-existing", existing]) == 1
    assert '"to": "Earliest", "onExisting": "NewPrefix"' in capsys.readouterr().err


def test_the_help_of_a_reset_has_the_values_of_the_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["reset-offsets", "--help"])
    text = capsys.readouterr().out
    assert "{Fail,NewPrefix}" in text
    assert "{Earliest,Latest,Timestamp,Offsets}" in text


# -- what others have written ------------------------------------------------------------------------------------------

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b2J\x7f\u202e"
"""It sets the title of a terminal, clears it, and reverses the direction of the text."""


def with_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sink: Json) -> None:
    """kubectl answers each call with this sink."""
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(sink))
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\ncat {answer}\n")
    program.chmod(0o755)
    monkeypatch.setenv("KUBECTL", str(program))


@pytest.mark.parametrize("words", [["status", "flights"], ["explain", "flights"], ["logs", "flights", "--previous"]])
@pytest.mark.parametrize("output", ["table", "json"])
def test_control_characters_of_a_sink_are_shown_and_do_not_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], output: str
) -> None:
    cluster = running(sparkConf={"spark.app.note": ESCAPE})
    cluster.fail(BucketNotFound(f"there is no bucket {ESCAPE}"))
    cluster.converge()
    with_answer(monkeypatch, tmp_path, cluster.sink)
    assert command.main(words if words[0] == "logs" else [*words, "--output", output]) == 0
    shown = capsys.readouterr().out
    # The operator escapes what it writes into a status, and JSON its backslashes.
    assert "\\u001b]0;owned\\u0007\\u001b[2J\\u009b2J\\u007f\\u202e" in shown.replace("\\\\", "\\")
    assert not set("\x1b\x07\x9b\x7f\u202e") & set(shown)
    if output == "json" and words[0] != "logs":
        assert json.loads(shown)


def test_control_characters_in_an_error_do_not_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with_answer(monkeypatch, tmp_path, {})
    (tmp_path / "kubectl").write_text("#!/bin/sh\nprintf 'error: \\033[2J' >&2\nexit 1\n")
    assert command.main(["status", "flights"]) == 1
    assert capsys.readouterr().err == "kubectl s3sink: \\u001b[2J\n"


@pytest.mark.parametrize("levels", [300, 3_000])
def test_a_sink_that_is_nested_too_deeply_does_not_prevent_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, levels: int
) -> None:
    deep = '{"a":' * levels + "{}" + "}" * levels
    sink = json.dumps(running().sink).replace('"spec": {', f'"spec": {{"driver": {deep}, ', 1)
    with_answer(monkeypatch, tmp_path, {})
    (tmp_path / "answer.json").write_text(f'{{"items": [{sink}]}}')
    assert command.main(["status"]) == 0
    assert "flights" in capsys.readouterr().out


@pytest.mark.parametrize("levels", [102, 150, 300])
def test_explain_names_the_field_that_is_nested_too_deeply(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, levels: int
) -> None:
    deep = '{"a":' * levels + "{}" + "}" * levels
    with_answer(monkeypatch, tmp_path, {})
    sink = json.dumps(running().sink).replace('"spec": {', f'"spec": {{"driver": {{"podTemplate": {deep}}}, ', 1)
    (tmp_path / "answer.json").write_text(sink)
    assert command.main(["explain", "flights"]) == 1
    error = capsys.readouterr().err
    assert "spec.driver.podTemplate.a.a: nested more than 100 levels deep" in error
    assert len(error.splitlines()) == 1
