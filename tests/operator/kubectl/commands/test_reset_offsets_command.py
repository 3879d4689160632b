"""`kubectl s3sink reset-offsets`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_operator import names
from s3sink_operator.kubectl.actions import ActionNotAllowed
from s3sink_operator.types import annotation
from sink_job.api.enums import OnExisting, ResetTo
from tests.operator.fake_cluster import Cluster, running
from tests.operator.kubectl.commands.command_line import parse, run
from tests.operator.kubectl.fake_kubectl import fake


@pytest.fixture
def cluster() -> Cluster:
    found = running()
    found.edit(state="Stopped")
    found.converge_with_kubelet()
    return found


def requested(cluster: Cluster) -> Any:
    """The request in the annotation."""
    return json.loads(annotation(cluster.sink, names.RESET_OFFSETS_ANNOTATION) or "null")


def test_without_yes_the_request_is_shown_and_nothing_is_changed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(fake(cluster), "reset-offsets", "flights", "--to", "Latest") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert '"to": "Latest", "onExisting": "Fail"}; nothing was changed, use --yes to send it' in shown.err
    assert requested(cluster) is None


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["--to", "Earliest"], {"to": "Earliest", "onExisting": "Fail"}),
        (["--to", "latest", "--on-existing", "newprefix"], {"to": "Latest", "onExisting": "NewPrefix"}),
        (["--to", "TIMESTAMP", "--timestamp", "2025-11-03T10:00:00Z"], {"timestamp": 1_762_164_000_000}),
        (
            ["--to", "Offsets", "--offset", "flights:0:5", "--offset", "flights:1:7"],
            {"partitions": [{"topic": "flights", "partition": n, "offset": offset} for n, offset in ((0, 5), (1, 7))]},
        ),
    ],
    ids=["earliest", "any case", "time", "offsets"],
)
def test_with_yes_the_request_is_in_the_annotation(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], words: list[str], fields: dict[str, object]
) -> None:
    assert run(fake(cluster), "reset-offsets", "flights", *words, "--yes") == 0
    assert capsys.readouterr().out == "flights is resetting its offsets\n"
    found = requested(cluster)
    assert found | fields == found
    assert found["nonce"]


def test_each_request_has_a_nonce_of_its_own(cluster: Cluster) -> None:
    nonces = set()
    for _ in range(3):
        run(fake(cluster), "reset-offsets", "flights", "--to", "Earliest", "--yes")
        nonces.add(requested(cluster)["nonce"])
    assert len(nonces) == 3


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--to", "Timestamp", "--timestamp", "soon"], "--timestamp: soon is neither milliseconds"),
        (["--to", "Offsets", "--offset", "a:b"], "--offset: a:b is not TOPIC:PARTITION:OFFSET"),
        (["--to", "Timestamp"], "timestamp"),
        (["--to", "Offsets"], "partitions"),
    ],
)
def test_an_invalid_request_is_rejected_before_it_is_shown_or_sent(
    cluster: Cluster, words: list[str], error: str
) -> None:
    for more in ([], ["--yes"]):
        with pytest.raises(ActionNotAllowed, match=error):
            run(fake(cluster), "reset-offsets", "flights", *words, *more)
    assert requested(cluster) is None


def test_a_running_sink_is_rejected_with_the_command_that_stops_it() -> None:
    with pytest.raises(ActionNotAllowed, match="requires Stopped: run kubectl s3sink stop flights --wait"):
        run(fake(running()), "reset-offsets", "flights", "--to", "Earliest", "--yes")


@pytest.mark.parametrize("to", list(ResetTo))
def test_each_start_position_of_the_manifest_is_accepted_in_any_case(to: ResetTo) -> None:
    for text in (to.value, to.value.lower(), to.value.upper()):
        assert parse("reset-offsets", "flights", "--to", text).to == to.value


@pytest.mark.parametrize("words", [["--to", "Middle"], ["--to", "Latest", "--on-existing", "Delete"], []])
def test_another_value_or_a_missing_position_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse("reset-offsets", "flights", *words)
    assert ended.value.code == 2
    assert "usage: kubectl s3sink reset-offsets" in capsys.readouterr().err


def test_existing_objects_fail_a_reset_by_default() -> None:
    assert parse("reset-offsets", "flights", "--to", "Latest").on_existing == OnExisting.FAIL


def test_the_help_has_the_values_of_the_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("reset-offsets", "--help")
    text = capsys.readouterr().out
    assert "{Fail,NewPrefix}" in text
    assert "{Earliest,Latest,Timestamp,Offsets}" in text
