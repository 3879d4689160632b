"""What a registration remembers in the ledger's folder."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError, LedgerUnreadable
from sink_job.tables.memory import Memory, StoredMemory, memory_key
from tests.support.memory_s3 import MemoryS3

MEMORY = Memory("uuid", "ledger", 1, 12, 2**62)


def stored() -> tuple[MemoryS3, StoredMemory]:
    s3 = MemoryS3()
    client: Any = s3
    return s3, StoredMemory(client, "root/", "lake.a")


def test_a_memory_is_read_as_it_was_written() -> None:
    _, memory = stored()
    assert memory.read() is None
    memory.write(MEMORY)
    assert memory.read() == MEMORY


def test_the_key_contains_the_name_of_the_table_as_one_element() -> None:
    assert memory_key("root/", "lake.a/../b") == "root/tables/lake.a%2F..%2Fb.json"


def test_a_file_of_a_newer_format_and_a_damaged_one_are_errors_with_the_key() -> None:
    s3, memory = stored()
    s3.put(memory.key, b'{"format": 2}')
    with pytest.raises(ConfigurationError, match=r"root/tables/lake\.a\.json"):
        memory.read()
    s3.put(memory.key, b"{")
    with pytest.raises(LedgerUnreadable, match=r"root/tables/lake\.a\.json"):
        memory.read()
