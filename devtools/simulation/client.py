"""The simulated client of S3: the calls of `sink_job.s3.S3Client` on a `Store`, with a step before each effect and one
between the effect and its reply. A fault may be drawn for each call (`CALL_FAULTS`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Protocol, TypeVar

from devtools.simulation.scheduler import Actor, Scheduler
from devtools.simulation.store import SimulatedStore
from devtools.simulation.two_buckets import FOLDER, SETTINGS, bucket_of_outage
from sink_job.api.errors import TransientError
from sink_job.s3 import (
    Conflict,
    Head,
    Listed,
    NoSuchUpload,
    NotFound,
    PutResult,
    RequestMetrics,
    S3Client,
    S3Outcome,
    S3Settings,
    Upload,
    UploadedPart,
    Version,
)
from sink_job.s3.checksums import combine_all
from sink_job.s3.multipart import MultipartCalls
from sink_job.s3.object_lock import BucketLock
from sink_job.s3.request_body import Body, ChunkedBody

T = TypeVar("T")

RETRY_TIMEOUT_MS = 120_000
"""How long a client retries."""

CALL_FAULTS = ("lost-reply", "echo", "outage", "outage-of-writes", "lost-reply-and-outage", "conflict")
"""Faults of a call: a lost reply and a retry; a copy that arrives later; an outage that outlasts the retries, of all
calls or of writes, before or after the effect; 409s."""

CONDITIONAL_FAULTS = ("torn-completion", "late-conflict")
"""Faults of conditional calls: a server that is killed inside a completion (`SimulatedStore.tear`) and then lies; a 409
that persists although the request is carried out, at once or later. They have random numbers of their own, so they
change no run without them."""

ECHO_MS = 60_000
"""Maximum delay of a copied request."""

LATE_MS = (1_000, 20_000, 600_000)
"""Maximum delays of a request that is still carried out while 409s are the replies to its repetitions."""


class Surroundings(Protocol):
    """The part of the simulation that the client uses."""

    scheduler: Scheduler
    echoes: list[tuple[int, str, Callable[[], object]]]
    conditional_rng: random.Random
    place_rng: random.Random

    def trace(self, text: str) -> None: ...
    def draw(self) -> str | None: ...
    def draw_conditional(self, what: str) -> str | None: ...
    def pause_before(self, what: str) -> int: ...
    def writes(self, actor: Actor, what: str) -> None: ...


class SimulatedS3(S3Client):
    """A client that all actors share; the running actor makes the call."""

    def __init__(
        self, settings: S3Settings, store: SimulatedStore, simulation: Surroundings, rng: random.Random, page: int
    ) -> None:
        """`page` is the maximum number of keys in a page of a listing."""
        self.settings = settings
        self.store = store
        self._simulation = simulation
        self._rng = rng
        self._page = page
        self._counts = RequestMetrics()
        self.failed_completions: set[tuple[str, str]] = set()
        """Actors and the uploads that they could not complete."""

    def without_ledger(self) -> SimulatedS3:
        """The client of a manifest with the ledger in the objects' bucket; this one if that is so anyway."""
        if self.settings.ledger is None:
            return self
        return SimulatedS3(SETTINGS, self.store, self._simulation, self._rng, self._page)

    def _is_of_ledger(self, what: str) -> bool:
        place = self.settings.ledger
        return place is not None and place.folder in what

    @property
    def meter(self) -> RequestMetrics:
        return self._counts

    def cancel_retries(self) -> None:
        """Does nothing: there are no pauses."""

    def close(self) -> None:
        """Does nothing: there are no connections."""

    # -- one call ----------------------------------------------------------------------------------------------------

    def _call(
        self,
        what: str,
        effect: Callable[[], T],
        *,
        writes: bool = False,
        conditional: bool = False,
        copy: Callable[[], object] | None = None,
        tear: Callable[[], object] | None = None,
    ) -> T:
        """`copy` is the effect of a copy of the request, if it is another one; `tear` that of a completion inside which
        the server is killed."""
        scheduler = self._simulation.scheduler
        pause = self._simulation.pause_before(what)
        if pause:
            scheduler.sleep(pause)
        scheduler.step()
        self._counts.request(what.partition(" ")[0])
        actor = scheduler.current
        if actor is None:
            return effect()
        if "/ledger/" in what and what.startswith(("get ", "put")):
            actor.unproven = False
        if writes:
            self._simulation.writes(actor, what)
        self._expect_answer(actor, what, writes)
        if conditional and (fault := self._simulation.draw_conditional(what)) is not None:
            return self._conditional_fault(actor, what, effect, fault, copy or effect, tear)
        fault = self._simulation.draw()
        if (
            fault is None
            or (fault in ("lost-reply", "echo") and not writes)
            or (fault == "conflict" and not conditional)
        ):
            return self._carried_out(actor, what, effect)
        self._simulation.trace(f"{actor.name}: {what}: {fault}")
        actor.faults.add(fault)
        if fault == "lost-reply":
            self._quietly(effect)
            scheduler.step()
        elif fault == "echo":
            at = scheduler.now + self._rng.randrange(ECHO_MS)
            self._simulation.echoes.append((at, f"a copy of {actor.name}'s {what}", copy or effect))
        elif fault == "conflict":
            raise self._conflict(what)
        else:
            self._begin_outage(actor, about_writes=fault != "outage", rng=self._rng)
            if fault == "lost-reply-and-outage":
                self._quietly(effect)
                self._expect_answer(actor, what, True)
            self._expect_answer(actor, what, writes)
        return self._carried_out(actor, what, effect)

    def _conditional_fault(
        self,
        actor: Actor,
        what: str,
        effect: Callable[[], T],
        fault: str,
        copy: Callable[[], object],
        tear: Callable[[], object] | None,
    ) -> T:
        """One of `CONDITIONAL_FAULTS`."""
        scheduler, rng = self._simulation.scheduler, self._simulation.conditional_rng
        self._simulation.trace(f"{actor.name}: {what}: {fault}")
        actor.faults.add(fault)
        if fault == "late-conflict":
            if rng.random() < 0.5:
                self._quietly(copy)
            else:
                at = scheduler.now + rng.randrange(rng.choice(LATE_MS))
                self._simulation.echoes.append((at, f"{actor.name}'s {what}", copy))
            raise self._conflict(what)
        assert tear is not None, "only completions are torn"
        self._quietly(tear)
        if rng.random() < 0.5:
            self._begin_outage(actor, about_writes=True, rng=rng)
            self._expect_answer(actor, what, True)
        scheduler.step()
        self._quietly(effect)  # the failed attempt: what follows is a repetition
        return self._carried_out(actor, what, effect)

    @staticmethod
    def _conflict(what: str) -> Conflict:
        key = what.partition(" ")[2]
        return Conflict(f"{what}: another write is under way", key, "ConditionalRequestConflict")

    def _begin_outage(self, actor: Actor, *, about_writes: bool, rng: random.Random) -> None:
        lasts = rng.choice((RETRY_TIMEOUT_MS, RETRY_TIMEOUT_MS, 10 * RETRY_TIMEOUT_MS))
        actor.outage_until = self._simulation.scheduler.now + lasts
        actor.about_writes = about_writes
        if self.settings.ledger is not None:
            actor.outage_of_ledger = bucket_of_outage(self._simulation.place_rng)

    def _expect_answer(self, actor: Actor, what: str, writes: bool) -> None:
        """Raises TransientError if the store does not reply before the retries end."""
        if actor.outage_until < self._simulation.scheduler.now or (actor.about_writes and not writes):
            return
        if actor.outage_of_ledger not in (None, self._is_of_ledger(what)):
            return
        self._simulation.scheduler.sleep(RETRY_TIMEOUT_MS)
        if actor.outage_until > self._simulation.scheduler.now - RETRY_TIMEOUT_MS:
            raise TransientError(f"s3://{self.bucket}: {what} failed for 120 s: ServiceUnavailable")

    def _carried_out(self, actor: Actor, what: str, effect: Callable[[], T]) -> T:
        try:
            answer = effect()
        except Exception as error:
            self._simulation.trace(f"{actor.name}: {what} -> {type(error).__name__}")
            self._simulation.scheduler.step()
            raise
        self._simulation.trace(f"{actor.name}: {what} -> {_short(answer)}")
        self._simulation.scheduler.step()
        return answer

    @staticmethod
    def _quietly(effect: Callable[[], object]) -> None:
        try:
            effect()
        except Exception:
            return

    # -- objects -----------------------------------------------------------------------------------------------------

    def put(
        self,
        key: str,
        body: Body,
        *,
        only_if_absent: bool = False,
        if_match: str | None = None,
        content_type: str | None = None,
    ) -> PutResult:
        data = bytes(ChunkedBody(body).read())
        what = f"put-if-absent {key}" if only_if_absent else f"put {key}" if if_match is None else f"replace {key}"
        return self._call(
            what,
            lambda: self.store.put(key, data, only_if_absent=only_if_absent, if_match=if_match),
            writes=True,
            conditional=(only_if_absent or if_match is not None) and "/probe/" not in key,
        )

    def get(self, key: str) -> bytes:
        return self._call(f"get {key}", lambda: self.store.get(key))

    def get_range(
        self, key: str, offset: int, length: int, *, etag: str | None = None, version: str | None = None
    ) -> bytes:
        assert version is None, "the bucket has no versions"
        if length == 0:
            return b""
        return self._call(f"get {key}", lambda: self.store.get_range(key, offset, length, etag))

    def stream(self, key: str, *, step: int = 8 << 20) -> Iterator[bytes]:
        head = self.head(key)
        if head is None:
            raise NotFound(f"{key}: no such object", key, "NoSuchKey")
        for start in range(0, head.size, step):
            yield self.get_range(key, start, min(step, head.size - start), etag=head.etag)

    def head(self, key: str) -> Head | None:
        return self._call(f"head {key}", lambda: self.store.head(key))

    def list(self, prefix: str, start_after: str | None = None, *, page: int = 1000) -> Iterator[Listed]:
        most = min(page, self._page)
        after = start_after
        while True:
            found = self._call(f"list {prefix}", lambda after=after: self.store.page(prefix, after, most))  # type: ignore[misc]
            yield from found
            if len(found) < most:
                return
            after = found[-1].key

    def delete(self, keys: Iterable[str]) -> None:
        unique = list(keys)
        of_ledger = [key for key in unique if self._is_of_ledger(key)]
        for some, where in (([key for key in unique if key not in of_ledger], ""), (of_ledger, f" of {FOLDER}")):
            if some:
                names = ", ".join("/".join(key.split("/")[-2:]) for key in some)
                self._call(f"delete {names}{where}", lambda some=some: self.store.delete(some), writes=True)  # type: ignore[misc]

    # -- uploads -----------------------------------------------------------------------------------------------------

    def create_upload(
        self,
        key: str,
        *,
        content_type: str | None = None,
        content_encoding: str | None = None,
        temporary: bool = False,
        locked: bool = True,
    ) -> str:
        return self._call(f"create-upload {key}", lambda: self.store.create_upload(key), writes=True)

    def upload_part(self, key: str, upload_id: str, number: int, body: Body, crc: int | None = None) -> UploadedPart:
        data = bytes(ChunkedBody(body).read())
        what = f"upload-part {key} {upload_id}/{number}"
        return self._call(what, lambda: self.store.upload_part(key, upload_id, number, data, crc), writes=True)

    def versions(self, key: str, *, page: int = 1000) -> Sequence[Version]:
        return []

    def complete(
        self,
        key: str,
        upload_id: str,
        parts: Sequence[UploadedPart],
        crc: int | None = None,
        *,
        if_match: str | None = None,
    ) -> str:
        """The product's own call, which confirms a repeated completion by a HEAD (P9)."""
        actor = self._simulation.scheduler.current
        whole = combine_all((part.crc, part.size) for part in parts) if crc is None else crc
        try:
            completion = _Completion(self, upload_id, parts, whole, if_match)
            return completion.complete(key, upload_id, parts, whole, if_match=if_match)
        except S3Outcome:
            if actor is not None:
                self.failed_completions.add((actor.name, upload_id))
            raise

    def call_conditionally(
        self, what: str, effect: Callable[[], T], *, copy: Callable[[], object], tear: Callable[[], object]
    ) -> T:
        """A completion. `copy` is its effect where the sender does not see the reply."""
        conditional = "/probe/" not in what
        return self._call(what, effect, writes=True, conditional=conditional, copy=copy, tear=tear)

    def tag_offsets(self, key: str, first: int, last: int, count: int) -> None:
        """Puts the tags of an object in a run with `offset-tags`. It may have been moved away."""
        if self.store.has_offset_tags:
            self._call(f"tag {key}", lambda: self.store.tag(key, (first, last, count)), writes=True)

    def abort(self, key: str, upload_id: str) -> bool:
        return self._call(f"abort {key} {upload_id}", lambda: self.store.abort(key, upload_id), writes=True)

    def list_uploads(self, prefix: str, *, page: int = 1000) -> Iterator[Upload]:
        yield from self._call(f"list-uploads {prefix}", lambda: self.store.list_uploads(prefix))

    def list_parts(self, key: str, upload_id: str, *, page: int = 1000) -> Iterator[tuple[int, str, int]]:
        upload = self.store.uploads.get(upload_id)
        if upload is None:
            raise NoSuchUpload(f"{key}: no such upload", key, "NoSuchUpload")
        yield from ((part.number, part.etag, part.size) for part, _ in upload.parts.values())

    # -- the bucket --------------------------------------------------------------------------------------------------

    def check_access(self) -> None:
        """Does nothing: the bucket exists."""

    def server_now_ms(self) -> int:
        return self.store.second()

    def clock_ms(self) -> int:
        return self.store.second()

    def lifecycle_rules(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def keeps_versions(self) -> bool:
        return False

    def bucket_lock(self) -> BucketLock:
        return BucketLock()


class _Completion(MultipartCalls):
    """A completion by the product's own code, with this object as its transport: what the product concludes from a
    repeated completion is a part of the run (P9)."""

    def __init__(
        self, client: SimulatedS3, upload_id: str, parts: Sequence[UploadedPart], crc: int, if_match: str | None
    ) -> None:
        self._transport = self  # type: ignore[assignment]
        self.settings = client.settings
        self._client = client
        self._given = upload_id, parts, crc
        self._if_match = if_match

    def persist(self, operation: str, key: str, attempt: Callable[[bool], T]) -> T:
        """All attempts of one call. A copy of a request is none of them."""
        attempts = count()
        return self._client.call_conditionally(
            f"complete {key} {self._given[0]}",
            lambda: attempt(next(attempts) > 0),
            copy=lambda: self._client.store.complete(key, *self._given, if_match=self._if_match),
            tear=lambda: self._client.store.tear(key, *self._given, if_match=self._if_match),
        )

    def once(self, operation: str, *, key: str, again: bool, **given: Any) -> Mapping[str, Any]:
        if given.get("IfNoneMatch") != "*" and given.get("IfMatch") is None:
            self._client.store.take(key)
        return {"ETag": self._client.store.complete(key, *self._given, if_match=given.get("IfMatch"))}

    def call(self, operation: str, *, key: str) -> Mapping[str, Any]:
        if self._client.head(key) is None:
            raise NotFound(f"{key}: no such object", key, "NoSuchKey")
        return {}


def _short(answer: object) -> str:
    if isinstance(answer, bytes):
        return f"{len(answer)} bytes"
    if isinstance(answer, list):
        return f"{len(answer)} found"
    if isinstance(answer, Head):
        return f"{answer.size} bytes"
    if isinstance(answer, Mapping):
        return str(answer.get("ETag"))
    return "" if isinstance(answer, PutResult | UploadedPart) else str(answer)
