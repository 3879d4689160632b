"""The schemas that a driver passes to tasks before there is a ledger."""

from __future__ import annotations

import pickle

import pytest

from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.verify.previous.given_schemas import GivenSchemas

SCHEMA = RegisteredSchema("1", "AVRO", '"string"')
GIVEN = GivenSchemas({"log": {"1": SCHEMA}}, {"log": {"2": "it is not registered"}})


def test_a_schema_is_found_by_topic_and_id_after_it_was_pickled() -> None:
    found = pickle.loads(pickle.dumps(GIVEN))
    assert found.find("log", "1") == SCHEMA
    assert found.find("other", "1") is None
    assert found.find("log", "3") is None


def test_an_id_that_cannot_be_used_has_a_reason() -> None:
    with pytest.raises(UnknownSchema, match="it is not registered"):
        GIVEN.find("log", "2")
