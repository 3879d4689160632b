"""The annotations that actions write, and the actions that are rejected."""

from __future__ import annotations

import json

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl import actions
from s3sink_operator.kubectl.actions import ActionNotAllowed
from s3sink_operator.types import Json
from sink_job.api.enums import ResetTo
from tests.argocd.test_customization import ACTIONS, run
from tests.operator.fake_cluster import document, running


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


def test_waiting_for_a_restart_is_not_over_while_the_old_driver_is_still_ready() -> None:
    cluster = running()
    action = actions.restart(cluster.sink, "r1")
    assert not action.is_done(cluster.sink, cluster.driver)


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
