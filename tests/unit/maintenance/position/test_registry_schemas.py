"""What a registry answers before there is a ledger."""

from __future__ import annotations

import pytest

from sink_job.api.errors import TransientError
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.maintenance.position.registry_schemas import RegistrySchemas


class Registry:
    url = "http://registry"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool]] = []

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        self.asked.append((topic, schema_id, is_key))
        if schema_id == "8":
            raise UnknownSchema("ids are UUIDs")
        if schema_id == "9":
            raise TransientError("no answer")
        return None if schema_id == "7" else RegisteredSchema(schema_id, "AVRO", f'"{schema_id}"')

    def close(self) -> None: ...


def reason_against(schema: RegisteredSchema) -> str | None:
    return "it cannot be compiled" if schema.text == '"6"' else None


def test_each_id_is_asked_for_once_and_has_a_schema_or_a_reason() -> None:
    registry = Registry()
    schemas = RegistrySchemas(registry, reason_against)
    schemas.ask("log", ["1", "6", "7", "8", "key-1"])
    schemas.ask("log", ["1", "7", "key-1"])
    assert registry.asked == [
        ("log", "1", False),
        ("log", "6", False),
        ("log", "7", False),
        ("log", "8", False),
        ("log", "1", True),
    ]
    assert {each: found.id for each, found in schemas.given.resolved["log"].items()} == {"1": "1", "key-1": "key-1"}
    assert schemas.given.unknown["log"] == {
        "6": "it cannot be compiled",
        "7": "the schema registry does not know the schema id 7",
        "8": "ids are UUIDs",
    }


def test_topics_have_ids_of_their_own() -> None:
    registry = Registry()
    schemas = RegistrySchemas(registry, reason_against)
    schemas.ask("one", ["1"])
    schemas.ask("two", ["1"])
    assert [topic for topic, _, _ in registry.asked] == ["one", "two"]


def test_an_error_of_the_registry_is_raised() -> None:
    with pytest.raises(TransientError, match="no answer"):
        RegistrySchemas(Registry(), reason_against).ask("log", ["9"])
