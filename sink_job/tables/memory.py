"""What the last registration left in a table, in the ledger's folder: `<ledger root>tables/<table>.json`.

It is written after a commit and decides nothing about what is added. It only shows that others have changed the table.
A registration that ends before it writes the file leaves the one before, which is lower than the table.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec
from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.ledger import files
from sink_job.s3 import S3Client
from sink_job.tables.missing.skipped import Skipped
from sink_job.tables.successors.continuation import Continuation

FORMAT: Final = 1


class Memory(msgspec.Struct, frozen=True):
    """The UUID of the table and the position of the last registration.

    `accepted` is a snapshot with a position from which the table was rolled back, which the user has accepted for
    `branch`, and `accepted_head` the head of the branch then; 0: none. `sequence` and `accepted_sequence` are the
    sequence numbers of `snapshot` and `accepted_head`. `continued`: the table was left, and this was seen in it. Later
    registrations do not load it.
    """

    uuid: str
    ledger: str
    generation: int
    record: int
    snapshot: int
    accepted: int = 0
    accepted_head: int = 0
    format: int = FORMAT
    branch: str = MAIN_BRANCH
    skipped: Skipped | None = None
    claim: str = ""
    sequence: int = 0
    accepted_sequence: int = 0
    continued: Continuation | None = None


class StoredMemory:
    """The file of one table."""

    def __init__(self, s3: S3Client, root: str, table: str) -> None:
        """`root` is the ledger's prefix and ends with `/`."""
        self._s3 = s3
        self.key = memory_key(root, table)

    def read(self) -> Memory | None:
        """None before the first registration. Raises LedgerUnreadable and the errors of the store."""
        return files.find(self._s3, self.key, Memory, expected_format=FORMAT)

    def write(self, memory: Memory) -> None:
        """Raises the errors of the store."""
        self._s3.put(self.key, msgspec.json.encode(memory))


def memory_key(root: str, table: str) -> str:
    """The key of the file of a table."""
    return f"{root}tables/{quote(table, safe='')}.json"
