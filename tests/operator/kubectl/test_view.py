"""What `kubectl s3sink status` shows."""

from __future__ import annotations

import json
import re

from s3sink_operator import names
from s3sink_operator.kubectl import view
from sink_job.api.errors import BucketNotFound
from sink_job.api.report import TableReport, TableSums
from tests.operator.fake_cluster import MINUTE, START, document, report, running


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


def test_what_a_table_lacks_is_shown_with_the_reason() -> None:
    cluster = running()
    tables = [TableReport(table="lake.flights", topic="flights", lag_objects=3, lag_ms=61_000, reason="TableReplaced")]
    cluster.report = report(now=cluster.now, tables=tables, table_sums=TableSums(tables=1))
    cluster.converge()
    text = view.detail(cluster.sink, cluster.now)
    assert re.search(r"TABLE +TOPIC +COMMITTED +MISSING +BEHIND +ERROR", text)
    assert re.search(r"lake\.flights +flights +- +3 +1m1s +TableReplaced", text)


def test_a_sink_shows_the_objects_that_tables_were_registered_without() -> None:
    cluster = running()
    tables = [
        TableReport(table="lake.a", topic="a", skipped_objects=12),
        TableReport(table="lake.b", topic="b"),
    ]
    cluster.report = report(now=cluster.now, tables=tables, table_sums=TableSums(tables=2))
    cluster.converge()
    text = view.detail(cluster.sink, cluster.now)
    assert re.search(r"TABLE +TOPIC +COMMITTED +MISSING +BEHIND +SKIPPED +ERROR", text)
    assert re.search(r"lake\.a +a +- +0 +- +12 +-", text)
    assert re.search(r"lake\.b +b +- +0 +- +0 +-", text)


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
