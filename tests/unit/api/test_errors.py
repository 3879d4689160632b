"""Domain errors: each has an exit code and a name, and survives the way from an executor to the driver."""

from __future__ import annotations

import inspect
import pickle

import pytest

from sink_job.api import errors
from sink_job.api.errors import DataError, InvalidSpec, SinkError

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SinkError)]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SinkError", 1),
        ("InvalidSpec", 2),
        ("LedgerFenced", 3),
        ("DataError", 4),
        ("DataLoss", 5),
        ("ObjectConflict", 6),
        ("BucketNotFound", 7),
        ("AccessDenied", 7),
        ("InvalidCredentials", 7),
        ("SecretNotFound", 7),
        ("UnsupportedStore", 7),
        ("ClockSkew", 7),
        ("TopicNotFound", 7),
        ("TopicRecreated", 7),
        ("OwnershipConflict", 7),
        ("LedgerLost", 7),
        ("TransientError", 75),
        ("OutOfMemory", 75),
        ("TooManyExecutorFailures", 11),
    ],
)
def test_an_error_ends_the_process_with_its_code(name: str, code: int) -> None:
    assert getattr(errors, name).exit_code == code


def test_every_error_has_a_reason_of_its_own_that_kubernetes_accepts() -> None:
    reasons = [kind.reason for kind in ALL]
    assert len(set(reasons)) == len(reasons)
    assert all(reason.isalpha() and reason[0].isupper() for reason in reasons)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_survives_the_way_to_the_driver(kind: type[SinkError]) -> None:
    arguments = {DataError: ("flights", 3, 180, "not JSON"), InvalidSpec: (["spec.s3: is missing"],)}
    error = kind(*arguments.get(kind, ("the bucket is gone: create it",)))
    travelled = pickle.loads(pickle.dumps(error))
    assert (type(travelled), str(travelled), travelled.args) == (kind, str(error), error.args)


def test_a_data_error_says_where_the_record_is() -> None:
    assert str(DataError("flights", 3, 180, "not JSON")).startswith("record at flights-3 offset 180: not JSON. ")


def test_a_data_error_says_what_to_do_about_it() -> None:
    told = str(DataError("flights", 3, 180, "not JSON"))
    assert "correct the producer" in told
    assert told.endswith("spec.errors.tolerance: All drops such records and tells of them")


def test_a_spec_error_says_every_mistake_in_a_line() -> None:
    assert str(InvalidSpec(["a: is missing", "b: is missing"])) == "a: is missing\nb: is missing"
