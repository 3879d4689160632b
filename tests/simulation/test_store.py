"""The simulated bucket replies as a real server does: equal random calls have equal results."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from devtools.s3 import S3Server
from devtools.simulation.client import SimulatedS3
from devtools.simulation.scheduler import Actor, Scheduler
from devtools.simulation.store import SimulatedStore
from sink_job.s3 import Head, Listed, PutResult, S3Client, S3Outcome, UploadedPart
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

KEYS = ("a/1", "a/2", "a/b/1", "c")
PAYLOADS = (b"", b"few bytes", b"other few bytes", b"x" * (5 << 20), b"y" * (5 << 20))
CALLS = 150
SEEDS = range(4)


class Nothing:
    """A simulation without faults."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(random.Random(0), now=1_700_000_000_000, stay=1, tick=0)
        self.echoes: list[tuple[int, str, Callable[[], object]]] = []
        self.place_rng = random.Random(0)

    def trace(self, text: str) -> None:
        """Discards the trace."""

    conditional_rng = random.Random(0)

    def draw_conditional(self, what: str) -> None:
        return None

    def draw(self) -> None:
        return None

    def writes(self, actor: Actor, what: str) -> None:
        """Allows all writes."""

    def pause_before(self, what: str) -> int:
        return 0


class Caller:
    """Makes random calls; keeps the ids of uploads and parts, also of completed and aborted ones."""

    def __init__(self, s3: S3Client, rng: random.Random) -> None:
        self.s3 = s3
        self.rng = rng
        self.uploads: list[tuple[str, str]] = []
        self.parts: dict[int, dict[int, UploadedPart]] = {}

    def call(self) -> object:
        """The result of the next call, without ids and times, which differ between stores."""
        kinds: list[Callable[[], object]] = [self.put, self.get, self.get_range, self.head, self.list, self.delete]
        kinds.append(self.replace)
        kinds += [self.create, self.abort, self.listed_uploads, *[self.part] * 3, *[self.complete] * 2]
        kind = self.rng.choice(kinds)
        try:
            return kind.__name__, _comparable(kind())
        except S3Outcome as outcome:
            return kind.__name__, type(outcome).__name__

    def put(self) -> object:
        return self.s3.put(self._key(), self.rng.choice(PAYLOADS), only_if_absent=self.rng.random() < 0.5)

    def replace(self) -> object:
        key = self._key()
        head = self.s3.head(key)
        etag = head.etag if head is not None and self.rng.random() < 0.7 else '"00000000000000000000000000000000"'
        return self.s3.put(key, self.rng.choice(PAYLOADS), if_match=etag)

    def get(self) -> object:
        return self.s3.get(self._key())

    def get_range(self) -> object:
        return self.s3.get_range(self._key(), self.rng.choice((0, 3, 9, 100)), self.rng.choice((0, 1, 20)))

    def head(self) -> object:
        return self.s3.head(self._key())

    def list(self) -> object:
        after = self.rng.choice((None, "a/1", "a/b"))
        return list(self.s3.list(self.rng.choice(("", "a/", "b")), after, page=2))

    def delete(self) -> object:
        self.s3.delete([self._key(), self._key()])
        return None

    def create(self) -> object:
        key = self._key()
        self.uploads.append((key, self.s3.create_upload(key)))
        return None

    def part(self) -> object:
        number, upload = self._upload()
        part = self.s3.upload_part(*upload, self.rng.randint(1, 2), self.rng.choice(PAYLOADS[1:]))
        self.parts.setdefault(number, {})[part.number] = part
        return part

    def complete(self) -> object:
        number, upload = self._upload()
        parts = [part for _, part in sorted(self.parts.get(number, {}).items())]
        if not parts:
            return None
        if self.rng.random() < 0.2:
            parts[-1] = replace(parts[-1], etag='"00000000000000000000000000000000"')
        if self.rng.random() < 0.2:
            return self.s3.complete(*upload, parts, crc=1)
        return self.s3.complete(*upload, parts)

    def abort(self) -> object:
        _, upload = self._upload()
        return self.s3.abort(*upload)

    def listed_uploads(self) -> object:
        return [upload.key for upload in self.s3.list_uploads(self.rng.choice(("", "a/", "a/b")))]

    def _key(self) -> str:
        return self.rng.choice(KEYS)

    def _upload(self) -> tuple[int, tuple[str, str]]:
        if not self.uploads:
            self.create()
        number = self.rng.randrange(max(0, len(self.uploads) - 4), len(self.uploads))
        return number, self.uploads[number]


def _comparable(answer: object) -> object:
    if isinstance(answer, Head):
        return answer.size, answer.crc64nvme, answer.etag
    if isinstance(answer, Listed):
        return answer.key, answer.size, answer.etag
    if isinstance(answer, PutResult):
        return answer.etag
    if isinstance(answer, list):
        return [_comparable(each) for each in answer]
    return answer


@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_have_the_same_outcomes_as_on_a_real_server(s3: S3Server, tmp_path: Path, seed: int) -> None:
    sink_fixture = SinkFixture.new(s3.endpoint, tmp_path)
    simulation = Nothing()
    store = SimulatedStore(lambda: 0)
    store.lenient = True
    simulated = SimulatedS3(sink_fixture.settings, store, simulation, random.Random(0), page=1000)
    real, ours = Caller(sink_fixture.s3, random.Random(seed)), Caller(simulated, random.Random(seed))
    for number in range(CALLS):
        expected = real.call()
        assert ours.call() == expected, f"call {number}"
