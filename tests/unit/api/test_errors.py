"""Domain errors: each has an exit code and a reason, and can be pickled."""

from __future__ import annotations

import inspect
import pickle

import pytest

from sink_job.api import errors
from sink_job.api.errors import DataError, InvalidSpec, SinkError, TooManyRejected

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
        ("RegistryNotFound", 7),
        ("OwnershipConflict", 7),
        ("LedgerLost", 7),
        ("TransientError", 75),
        ("OutOfMemory", 75),
        ("TooManyExecutorFailures", 11),
    ],
)
def test_an_error_has_its_exit_code(name: str, code: int) -> None:
    assert getattr(errors, name).exit_code == code


def test_every_error_has_a_unique_reason_that_kubernetes_accepts() -> None:
    reasons = [kind.reason for kind in ALL]
    assert len(set(reasons)) == len(reasons)
    assert all(reason.isalpha() and reason[0].isupper() for reason in reasons)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_survives_pickling(kind: type[SinkError]) -> None:
    arguments: dict[type[SinkError], tuple[object, ...]] = {
        DataError: ("flights", 3, 180, "not JSON", "flights -n data"),
        TooManyRejected: ("flights", 3, 180, "not JSON", 150, 200, 0.5, "flights -n data"),
        InvalidSpec: (["spec.s3: is missing"],),
    }
    error = kind(*arguments.get(kind, ("the bucket does not exist: create it",)))
    travelled = pickle.loads(pickle.dumps(error))
    assert (type(travelled), str(travelled), travelled.args) == (kind, str(error), error.args)


def test_a_data_error_contains_the_position_of_the_record() -> None:
    assert str(DataError("flights", 3, 180, "not JSON")).startswith("record at flights-3 offset 180: not JSON. ")


def test_a_data_error_contains_the_action_to_take() -> None:
    text = str(DataError("flights", 3, 180, "not JSON"))
    assert "Fix the producer" in text
    assert "kubectl s3sink skip NAME flights-3@180" in text
    assert "spec.errors.skip: [{topic: flights, partition: 3, offset: 180}]" in text
    assert text.endswith("To drop and log all such records: spec.errors.tolerance: All")


def test_an_invalid_spec_lists_each_error_on_its_own_line() -> None:
    assert str(InvalidSpec(["a: is missing", "b: is missing"])) == "a: is missing\nb: is missing"
