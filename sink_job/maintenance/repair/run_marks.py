"""Marks of runs of `s3sink repair`, by which a later run finds the uploads of one that was killed.

A run does not claim the ledger, so no intent covers its uploads (P10). Before its first upload it writes the keys that
it may upload to into `repair/runs/<attempt>.json`. A run aborts the uploads at these keys that the ledger does not
name, and the copies that were not completed. A run that is alive may lose an upload to this, and starts it again. A run
deletes its own mark at its end, and marks that are older than a day: no run takes as long.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from sink_job.ledger.files import together
from sink_job.s3 import NotFound, S3Client

FOLDER = "repair/"
RUNS = f"{FOLDER}runs/"
MAX_AGE_MS = 24 * 3_600_000


class RunMark(msgspec.Struct, frozen=True):
    """The keys that a run may upload to."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class UnfinishedRuns:
    """Runs that have not ended: the keys of their objects, and the keys of marks that are older than a day."""

    keys: frozenset[str]
    expired: Sequence[str]


class RunMarks:
    """The marks below the ledger at `root`. `attempt` is unique to this run."""

    def __init__(self, s3: S3Client, root: str, attempt: str) -> None:
        self._s3 = s3
        self._root = root
        self._own = f"{root}{RUNS}{attempt}.json"
        self._is_written = False

    def unfinished(self) -> UnfinishedRuns:
        """The other runs that have not ended, alive or killed."""
        keys: set[str] = set()
        expired: list[str] = []
        before = None
        for listed in self._s3.list(f"{self._root}{RUNS}"):
            before = self._s3.server_now_ms() - MAX_AGE_MS if before is None else before
            if listed.last_modified_ms < before:
                expired.append(listed.key)
            try:
                keys.update(msgspec.json.decode(self._s3.get(listed.key), type=RunMark).keys)
            except (NotFound, msgspec.MsgspecError):
                continue
        return UnfinishedRuns(frozenset(keys), expired)

    def write(self, keys: Collection[str]) -> None:
        """Writes the mark of this run."""
        self._is_written = True
        self._s3.put(self._own, msgspec.json.encode(RunMark(tuple(sorted(keys)))))

    def abort_uploads(self, keys: Collection[str], referenced: Collection[str]) -> None:
        """Aborts the uploads at exactly these keys, except those with an id in `referenced`, and all uploads of copies
        below the ledger."""
        prefixes = [*sorted(keys), f"{self._root}{FOLDER}"]
        for uploads in together(lambda prefix: list(self._s3.list_uploads(prefix)), prefixes):
            for upload in uploads:
                is_own = upload.key in keys or upload.key.startswith(f"{self._root}{FOLDER}")
                if is_own and upload.upload_id not in referenced:
                    self._s3.abort(upload.key, upload.upload_id)

    def delete(self, expired: Collection[str] = ()) -> None:
        """Deletes the mark of this run, and expired ones."""
        keys = [*([self._own] if self._is_written else ()), *expired]
        if keys:
            self._s3.delete(keys)
