"""The offsets from which the next attempt resumes, as the attempts in the status name them."""

from __future__ import annotations

from s3sink_operator.names import RESTART_ANNOTATION
from s3sink_operator.types import Json
from sink_job.api.errors import DataError
from sink_job.api.report import Failure, Report, RunState
from tests.operator.fake_cluster import MINUTE, report, running
from tests.operator.status.test_reported_progress import partitions


def failed(reported: Report | None) -> Json:
    """The newest attempt of a sink whose driver ended with a final report, or was killed without one."""
    cluster = running()
    cluster.wait(MINUTE)
    cluster.report = report(now=cluster.now, partitions=partitions(50), assigned_partitions=50)
    cluster.converge()
    assert cluster.driver
    final = None if reported is None else reported.final()
    message = None if final is None else final.termination_message()
    cluster.end(cluster.driver, exit_code=137 if final is None else 4, message=message)
    cluster.report = None
    cluster.converge()
    return dict(cluster.status["attempts"][0])


def test_an_attempt_names_the_offsets_from_which_the_next_one_resumes() -> None:
    error = DataError("flights", 33, 338, "no JSON")
    found = failed(report(RunState.FAILED, round=9, partitions=partitions(50), failure=Failure.of(error)))
    assert found["resumesFrom"] == (
        "after round 9 of the ledger: flights-33 at offset 335, flights-0 at offset 5, flights-1 at offset 15, 47 more"
    )
    assert found["positions"][0] == {"topic": "flights", "partition": 33, "offset": 335}
    assert len(found["positions"]) == 20


def test_a_killed_attempt_names_the_last_known_offsets() -> None:
    found = failed(None)
    assert found["resumesFrom"] == (
        "after round 7 of the ledger or a later one: flights-0 at offset 5, flights-1 at offset 15, "
        "flights-2 at offset 25, 47 more, or later offsets"
    )


def test_an_attempt_that_the_operator_ends_names_the_last_known_offsets() -> None:
    cluster = running()
    cluster.report = report(now=cluster.now, partitions=partitions(2), assigned_partitions=2)
    cluster.annotate({RESTART_ANNOTATION: "now"})
    cluster.converge_with_kubelet()
    assert cluster.status["attempts"][1]["resumesFrom"] == (
        "after round 7 of the ledger or a later one: flights-0 at offset 5, flights-1 at offset 15, or later offsets"
    )
