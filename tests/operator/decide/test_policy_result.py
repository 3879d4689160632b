"""What a policy adds to its result."""

from __future__ import annotations

from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.types import Delete, ObjectWrites


def test_a_restart_for_a_rollout_keeps_the_writes_of_the_result() -> None:
    writes = ObjectWrites(delete=(Delete(kind="Pod", name="flights-s3sink-driver", uid="u"),), finalizers=("a",))
    result = PolicyResult(reason="Restarting", message="a new image", phase="Starting", writes=writes)
    started = result.starting_rollout()
    assert started.writes.starts_rollout
    assert (started.writes.delete, started.writes.finalizers) == (writes.delete, writes.finalizers)
    assert (started.reason, started.message, started.phase) == ("Restarting", "a new image", "Starting")
    assert not result.writes.starts_rollout
