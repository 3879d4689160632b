"""The invariants, checked against the contents of the store and Kafka: the oracle has every record, reads each ledger
record when it is put, and compares each object with its records when it becomes visible.

The oracle does not use the sink's own state, except the settings of claims, by which it writes each object again.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from devtools.bucket_listing import decompressed
from devtools.simulation import containers, null_values, transforms
from devtools.simulation.dead_letters import DeadLetterAccount, is_dead_letters
from devtools.simulation.kafka import SimulatedKafka
from devtools.simulation.registered_objects import RegisteredObjects, Source
from devtools.simulation.single_write import SingleWrite
from devtools.simulation.successors import Successors
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.dead_letter_topic import DeadLetter
from sink_job.ledger.state import ClosedObject, LedgerState, Record, without_audit
from sink_job.ledger.transitions import apply
from sink_job.partitioning.object_keys import is_temporary
from sink_job.records.batch import DEAD_LETTERS as PATH

_MARK = re.compile(r"generation ([0-9]+), ledger s3://.+")
_FILE = re.compile(r"([A-Za-z0-9._-]+)\+([0-9]+)\+([0-9]+)(?:\.json(?:\.gz|\.zst)?|\.avro|(?:\.[a-z0-9]+)?\.parquet)")
_TIME_PATH = re.compile(r"/d=([0-9]{8})/h=([0-9]{2})/")
_KIND_PATH = re.compile(r"/kind=([^/]*)/")
_OWNERSHIP = re.compile(r"/_s3sink/(?:topics/|[^/]+/owner\.json|[^/]+/probe/)|^delete probe/")
"""Changes of the bucket by which a driver asks for the ownership of topics, and tests the store."""

_TAKEN_OVER = "by a driver of a sink from which another one has taken over"

CLOCK_BOUND_MS = 302_000
"""Maximum lead of a record's clock over the store's in ms; the store's has whole seconds."""


class Violation(Exception):
    """A broken invariant. `kind` is its name."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {message}")


@dataclass
class Visible:
    """A visible object: its generation and its offsets."""

    tp: TopicPartition
    offsets: list[int]
    generation: int
    body: bytes


@dataclass
class Generation:
    """The records copied from one set of start offsets. `seen` are the offsets that were visible at any time, `skipped`
    those that a record of the ledger lists as skipped."""

    number: int
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    seen: dict[TopicPartition, set[int]] = field(default_factory=lambda: defaultdict(set))
    ended: dict[TopicPartition, int] | None = None
    frontier: dict[TopicPartition, int] = field(default_factory=dict)
    skipped: dict[TopicPartition, set[int]] = field(default_factory=lambda: defaultdict(set))


@dataclass
class LedgerAccount:
    """What the oracle knows of one ledger: the number and clock of its newest record, its records, the settings of its
    claims, and its state."""

    root: str
    head: int = 0
    clock: int = 0
    records: dict[int, bytes] = field(default_factory=dict)
    settings: dict[int, str] = field(default_factory=dict)
    state: LedgerState = field(default_factory=LedgerState)


class Oracle:
    """Checks the invariants. `now` returns the true time in ms; `fail` gets the first violation. With `wallclock` paths
    may depend on the clock and are not compared."""

    def __init__(self, kafka: SimulatedKafka, now: Callable[[], int], fail: Callable[[Violation], None]) -> None:
        self.kafka = kafka
        self.now = now
        self.fail = fail
        self.sources: dict[bytes, Source] = {}
        self._by_value: dict[str, Source] = {}
        self._values: dict[tuple[TopicPartition, int], bytes | None] = {}
        self._places: dict[tuple[TopicPartition, int], Source] | None = None  # with envelopes
        self._closed: dict[str, tuple[ClosedObject, LedgerAccount]] = {}
        self._single_write = SingleWrite()
        self.dead_letters = DeadLetterAccount()
        self.accepted: dict[TopicPartition, list[int]] = defaultdict(list)
        self.dropped: dict[TopicPartition, set[int]] = defaultdict(set)
        self.generations = [Generation(1)]
        self.named: dict[str, int] = {}
        self.claims: list[tuple[int, str]] = []
        self.ledgers: dict[str, LedgerAccount] = {}
        self.late = False  # a copy of a request arrives without the sender's knowledge
        self.stale: set[str] = set()
        self.registered: RegisteredObjects | None = None  # with a registry
        self.successors: Successors | None = None  # if other sinks take over
        self.tags: dict[str, tuple[int, int, int]] | None = None  # with offsetTags
        self.deceived: set[str] = set()  # drivers that the registry has given another schema than before
        self.visible: dict[str, Visible] = {}
        self.acknowledged: set[str] = set()
        self.field_ids: dict[tuple[str, tuple[str, ...]], int] = {}
        self.wallclock = False
        self.transforms = False  # lines are those of a list of transforms
        self.repairs = False  # commands may write objects again
        self.lost: set[tuple[str, str]] = set()  # the attempt that has recorded a loss, and the key of the object
        self.listed: set[tuple[TopicPartition, int]] = set()  # records that a manifest lists to be skipped
        self._decoder = msgspec.json.Decoder(Record)

    @property
    def current(self) -> Generation:
        return self.generations[-1]

    # -- Kafka -------------------------------------------------------------------------------------------------------

    def expect_envelopes(self) -> None:
        """Each object has envelopes, by which its records are found."""
        self._places = {}

    def produced(
        self, source: Source, value: bytes | None, registered: tuple[int, dict[str, Any]] | None = None
    ) -> None:
        """Takes a record. `registered`: its schema's version and its fields, with a registry."""
        tp, offset = source.tp, source.offset
        self._values[tp, offset] = value
        if self._places is not None:
            self._places[tp, offset] = source
        elif value is None:
            raise ValueError("only records in envelopes have no value")
        else:
            self._known_by_value(source, value, registered)
        self.accepted[tp].append(offset)

    def _known_by_value(self, source: Source, value: bytes, registered: tuple[int, dict[str, Any]] | None) -> None:
        self.sources[value] = source
        if registered is None:
            self._by_value[containers.canonical(json.loads(value))] = source
        else:
            assert self.registered is not None, "the run has a registry"
            self.registered.produced(source, *registered)

    def rejected(self, source: Source, value: bytes) -> None:
        """Takes a record that has to be in a dead-letter object."""
        self.dead_letters.produced(source, value)
        self.accepted[source.tp].append(source.offset)

    def is_copied(self, tp: TopicPartition, offset: int) -> bool:
        """Whether the record was visible in the current generation; records before its start count as copied."""
        start, topic = self.current.starts.get(tp), self.dead_letters.topic
        is_stored = topic is not None and offset in topic.stored[self.current.number][tp]
        is_passed = offset in self.current.seen[tp] or offset in self.current.skipped[tp]
        return start is not None and (offset < start or is_stored or is_passed)

    def in_topic(self, records: Sequence[DeadLetter]) -> None:
        """Handles records that are visible in the dead-letter topic: each once in a generation."""
        topic, generation = self.dead_letters.topic, self.current
        assert topic is not None, "the run has a dead-letter topic"
        for letter in records:
            source, value = self.dead_letters.of_letter(letter)
            difference = topic.takes(generation.number, letter, source, value)
            if difference is not None:
                self.fail(Violation("dead letters", difference))
            if source.offset not in self._recorded(source.tp):
                self.fail(Violation("dead letters", f"{letter.id} is produced, and no record lists it"))
            if topic.alone:
                generation.seen[source.tp].add(source.offset)

    def is_published(self, generation: Generation, tp: TopicPartition, offset: int) -> bool:
        """Whether a record is visible in all places where it has to be."""
        if offset in generation.skipped[tp]:
            return True
        topic = self.dead_letters.topic
        needs = topic is not None and self.dead_letters.has(tp, offset)
        is_there = not needs or (topic is not None and offset in topic.produced[generation.number][tp])
        return offset in generation.seen[tp] and is_there

    @property
    def lost_records(self) -> bool:
        """Whether Kafka has dropped records that were in no object."""
        return any(self.dropped.values())

    def commits(self, actor: str, tp: TopicPartition, *, unproven: bool) -> None:
        """Checks a commit of the sink: only after its driver has put a record or checked the head of the ledger, since
        it last polled log ends (P4)."""
        if unproven:
            message = f"{actor} commits {tp} without a check that the ledger is its own"
            self.fail(Violation("unproven commit", message))

    def committed(self, tp: TopicPartition, offset: int, mark: str) -> None:
        """Checks a commit of the sink: never above the visible records of the commit's generation (P5)."""
        number = generation_of(mark) or 1
        if number > len(self.generations):
            self.fail(Violation("group ahead", f"{tp}: a commit of generation {number}, which does not exist"))
            return
        generation = self.generations[number - 1]
        if tp not in generation.starts:
            return
        frontier = self.frontier(generation, tp)
        if frontier is not None and offset > frontier:
            message = (
                f"{tp}: offset {offset} is committed, and {frontier} is in no visible object of generation {number}"
            )
            self.fail(Violation("group ahead", message))

    def frontier(self, generation: Generation, tp: TopicPartition) -> int | None:
        """The first record that was never visible in the generation; None if there is none."""
        records = self.accepted[tp]
        index = generation.frontier.get(tp, 0)
        start, dropped = generation.starts[tp], self.dropped[tp]
        while index < len(records) and (
            records[index] < start or self.is_published(generation, tp, records[index]) or records[index] in dropped
        ):
            index += 1
        generation.frontier[tp] = index
        return records[index] if index < len(records) else None

    # -- the store ---------------------------------------------------------------------------------------------------

    def put(self, key: str, body: bytes) -> None:
        """Handles a put: a record of the ledger lists its objects from now on."""
        if "/_s3sink/" not in f"/{key}":
            return
        self._single_write.put(key, body)
        if self.registered is not None:
            self.registered.put(key)
        successors = self.successors
        if successors is not None:
            successors.put(key, body)
        root, found, _ = key.partition("/ledger/")
        if not found:
            return
        account = self.ledgers.get(root) or self.ledgers.setdefault(root, LedgerAccount(root))
        record = self._decoder.decode(gzip.decompress(body))
        if self.late and record.number <= account.head:
            return  # at a dropped number: no driver acts on it
        if account.records.setdefault(record.number, body) != body:
            if record.number > account.head - 1:
                self.fail(Violation("two records", f"record {record.number} was written twice"))
            self.claims.append((record.number, record.attempt))
            self.stale.add(record.attempt)
            return
        if record.kind == "claim" and record.reset is None:
            self.claims.append((record.number, record.attempt))
        if record.number <= account.head:
            self.stale.add(record.attempt)
            return
        self.stale.discard(record.attempt)
        if successors is not None:
            self._expect_owner(successors, root, record)
        account.head = record.number
        self._follow(account, record)
        if record.attempt in self.deceived and not self.late:
            message = f"record {record.number} is put after the registry has returned another schema for an id"
            self.fail(Violation("registry changed", message))
        if record.settings is not None:
            account.settings[record.number] = record.settings
        if record.clock > self.now() + CLOCK_BOUND_MS and record.clock > account.clock:
            self.fail(
                Violation("clock", f"the clock of record {record.number} is {record.clock - self.now()} ms ahead")
            )
        account.clock = record.clock
        if record.reset is not None:
            self.claims.append((record.number, record.attempt))
            ended = {TopicPartition.parse(name): p.committable for name, p in record.reset.ended.items()}
            self.current.ended = ended
            self.generations.append(Generation(record.reset.generation))
        generation = self.current
        # A claim after the hand-over counts if its ledger continues, and not if another ledger follows it.
        counts = successors is None or not successors.other_ledger or record.attempt not in successors.superseded
        for name, change in record.partitions.items():
            tp = TopicPartition.parse(name)
            if tp not in generation.starts and counts:
                start = generation.starts[tp] = change.state.next
                gone = range(start, self.kafka.logs[tp].start if tp in self.kafka.logs else start)
                self.dropped[tp].update(gone)  # after the start was chosen
                self._expect_not_ahead(generation, tp)
            if counts:
                self._skips(generation, tp, change.state.skipped)
        for o in record.closed:
            self.named[o.key] = generation.number
            self._closed[o.key] = o, account
        self._expect_tags(record)
        self.acknowledged.update(record.acknowledged)
        self.lost.update((record.attempt, each.key) for each in record.lost)

    def _skips(self, generation: Generation, tp: TopicPartition, skipped: Sequence[int]) -> None:
        """Takes the records that the ledger lists as skipped: only such as a manifest has listed, and no object has."""
        wrong = [each for each in skipped if each in generation.seen[tp] or (tp, each) not in self.listed]
        if wrong:
            self.fail(Violation("skipped", f"offsets {wrong} of {tp} are skipped, and in an object or not listed"))
        generation.skipped[tp].update(skipped)

    def _expect_tags(self, record: Record) -> None:
        """An object has the tags with its offsets before a record acknowledges it (P5)."""
        for key in record.acknowledged if self.tags is not None else ():
            o = self._closed[key][0]
            expected = (o.first, o.last, o.offsets.count)
            if self.tags is not None and not is_temporary(o.path, key) and self.tags.get(key) != expected:
                message = f"record {record.number} acknowledges {key}, whose tags are {self.tags.get(key)}"
                self.fail(Violation("tags", f"{message} and not {expected}"))

    def writes(self, attempt: str, what: str) -> None:
        """Checks a change of the bucket: never by a driver whose claim has a dropped number (P4), or whose ledger was
        handed over before its claim (P11)."""
        if attempt in self.stale and "/ledger/" not in what:
            self.fail(Violation("stale claim", f"{what} by a driver whose claim is not the head of the ledger"))
        if self.successors is not None:
            self.acts(self.successors, attempt, what)

    def acts(self, successors: Successors, attempt: str, what: str) -> None:
        """Checks an effect: none by a driver that claimed its ledger after another sink had taken over. It asks for
        its ownership again, and may claim again."""
        if attempt in successors.superseded and not _OWNERSHIP.search(what) and "/ledger/" not in what:
            self.fail(
                Violation("lost ownership", f"{what} by a driver of a sink from which another one has taken over")
            )

    def _expect_owner(self, successors: Successors, root: str, record: Record) -> None:
        if record.kind == "claim":
            successors.claims(root, record.attempt)
        elif record.attempt in successors.superseded and not self.late:
            self.fail(Violation("lost ownership", f"record {record.number} {_TAKEN_OVER}"))

    def _follow(self, account: LedgerAccount, record: Record) -> None:
        """Keeps the state after the newest record. The round clock never goes back while an object is open (P2)."""
        if record.clock < account.state.clock and any(p.open for p in account.state.partitions.values()):
            message = f"the clock of record {record.number} is {account.state.clock - record.clock} ms behind"
            self.fail(Violation("clock back", f"{message} that of the record before, and objects are open"))
        if record.number == account.state.number + 1:
            account.state = without_audit(apply(account.state, record))

    def _in_use(self) -> Iterator[LedgerAccount]:
        """The ledgers that no other one follows: drivers of one that was handed over are fenced."""
        successors = self.successors
        return (
            each for each in self.ledgers.values() if successors is None or not successors.is_handed_over(each.root)
        )

    def aborts(self, what: str, upload_id: str, *, may_abort: bool) -> None:
        """Checks an abort: never of an upload that the ledger names, unless its completion has failed (P4, P9, P10)."""
        for each in self._in_use():
            if upload_id in each.state.uploads() and not may_abort:
                self.fail(Violation("removed in use", f"{what}, which record {each.state.number} names"))

    def deletes(self, what: str, key: str) -> None:
        """Checks a deletion: never of a staging object that the ledger names (P4, P6, P10)."""
        for each in self._in_use():
            if key in each.state.staged():
                self.fail(Violation("removed in use", f"{what}, which record {each.state.number} names"))

    def _expect_not_ahead(self, generation: Generation, tp: TopicPartition) -> None:
        offset, mark, ours = self.kafka.group.get(tp, (0, "", False))
        if ours and generation.number == 1:
            self.committed(tp, offset, mark)

    def completed(self, key: str, body: bytes) -> None:
        """Handles a completion: an object becomes visible."""
        if "/_s3sink/" in f"/{key}":
            if self.dead_letters.topic is not None and key in self._closed:
                sources = self.dead_letters.sources(body)
                stored = self.dead_letters.topic.stored[self.current.number][sources[0].tp]
                stored.update(source.offset for source in sources)
            return
        generation = self.named.get(key)
        if generation is None:
            self.fail(Violation("unlisted", f"{key} is visible, but no record lists it"))
            return
        if generation != self.current.number:
            message = f"{key} of generation {generation} becomes visible in generation {self.current.number}"
            self.fail(Violation("late", message))
            return
        before = self.visible.get(key)
        if before is not None and self.repairs:
            if before.body != body:
                self.fail(Violation("changed", f"{key} is completed with other bytes than before"))
            return
        sources = self._sources(key, body)
        if not sources:
            return
        tp, offsets = sources[0].tp, [source.offset for source in sources]
        duplicates = [offset for offset in offsets if offset in self.current.seen[tp]]
        if duplicates:
            self.fail(Violation("duplicate", f"{key}: offset {duplicates[0]} of {tp} is also in another object"))
        again = sorted(self.current.skipped[tp].intersection(offsets))
        if again:
            self.fail(Violation("skipped", f"{key}: offsets {again} of {tp} are listed as skipped"))
        self.current.seen[tp].update(offsets)
        self.visible[key] = Visible(tp, offsets, generation, body)
        self._expect_key(key, sources)
        closed, account = self._closed[key]
        settings = account.settings[closed.settings]
        if is_dead_letters(key):
            difference = self.dead_letters.difference(closed, settings, body)
            if difference is not None:
                self.fail(Violation("dead letters", f"{key}: {difference}"))
            return
        self._expect_parts(closed, settings, body, sources)
        if self.registered is not None:
            difference = self.registered.difference(key, body, settings, generation)
            if difference is not None:
                self.fail(Violation("schema", f"{key}: {difference}"))

    def _recorded(self, tp: TopicPartition) -> Container[int]:
        """The offsets of the rejected records that a record of the ledger lists in closed objects."""
        found = [o for o, _ in self._closed.values() if o.path == PATH and o.topic_partition == tp]
        return {offset for o in found for s in o.sources for offset in range(s.start, s.end)}

    def _expect_parts(self, o: ClosedObject, settings: str, body: bytes, sources: list[Source]) -> None:
        """The object has the bytes and the parts of one that is written in one go (P3)."""
        values = [(source.offset, source.time, self._values[source.tp, source.offset]) for source in sources]
        expected = self._single_write.parts(settings, o.key, sources[0].tp, values, o.schema)
        if (whole := b"".join(expected)) != body:
            message = f"{o.key} has other bytes than its {len(values)} records written in one go"
            self.fail(Violation("other bytes", f"{message}: {_difference(body, whole)}; settings {settings}"))
        elif [part.size for part in o.parts] != [*map(len, expected)]:
            message = f"{o.key} has parts of {[part.size for part in o.parts]} bytes, and not {[*map(len, expected)]}"
            self.fail(Violation("other parts", message))

    def _sources(self, key: str, body: bytes) -> list[Source]:
        if is_dead_letters(key):
            return self.dead_letters.sources(body)
        if self.registered is not None:
            return self._registered_sources(self.registered, key, body)
        if self._places is not None:
            return self._sources_of_envelopes(self._places, key, body)
        if containers.is_container(key):
            return self._sources_of_container(key, body)
        lines = decompressed(body, key).split(b"\n")
        if lines.pop() or not lines:
            self.fail(Violation("bytes", f"{key} does not end with a whole line"))
            return []
        found = [self._by_line(line) for line in lines]
        known = [source for source in found if source is not None]
        if len(known) < len(found):
            self.fail(Violation("bytes", f"{key} has a line that is not a record: {lines[found.index(None)]!r}"))
            return []
        return known

    def _by_line(self, line: bytes) -> Source | None:
        if not self.transforms:
            return self.sources.get(line)
        try:
            return self._by_value.get(transforms.came_from(line))
        except (KeyError, ValueError):
            return None

    def _registered_sources(self, registered: RegisteredObjects, key: str, body: bytes) -> list[Source]:
        try:
            found = list(registered.sources(key, body))
        except Exception as error:
            self.fail(Violation("bytes", f"{key} cannot be read: {type(error).__name__}: {error}"))
            return []
        if key.endswith(".parquet"):
            self._expect_field_ids(key, containers.field_ids(body), found[0].tp.topic)
        return found

    def _sources_of_envelopes(
        self, places: Mapping[tuple[TopicPartition, int], Source], key: str, body: bytes
    ) -> list[Source]:
        found: list[Source] = []
        try:
            for tp, offset, time, value in null_values.envelopes(key, decompressed(body, key)):
                source, given = places[tp, offset], self._values[tp, offset]
                if (time, value) != (source.time, None if given is None else containers.canonical(json.loads(given))):
                    raise ValueError(f"{tp}@{offset} has {time} {value}, and not {source.time} {given!r}")
                found.append(source)
        except Exception as error:
            self.fail(Violation("bytes", f"{key} cannot be read: {type(error).__name__}: {error}"))
            return []
        if key.endswith(".parquet"):
            self._expect_field_ids(key, containers.field_ids(body), found[0].tp.topic)
        return found

    def _sources_of_container(self, key: str, body: bytes) -> list[Source]:
        try:
            values = containers.values(key, body)
        except Exception as error:
            self.fail(Violation("bytes", f"{key} cannot be read: {type(error).__name__}: {error}"))
            return []
        known = [self._by_value.get(value) for value in values]
        if None in known or not known:
            self.fail(Violation("bytes", f"{key} has no record, or other records: {values}"))
        elif key.endswith(".parquet"):
            self._expect_field_ids(key, containers.field_ids(body), str(known[0] and known[0].tp.topic))
        return [source for source in known if source is not None]

    def _expect_field_ids(self, key: str, found: dict[tuple[str, ...], int], topic: str) -> None:
        """A field has one id in all objects of a topic, and no two fields have the same."""
        for path, number in found.items():
            known = self.field_ids.setdefault((topic, path), number)
            if known != number:
                self.fail(Violation("field ids", f"{key}: {path} has the id {number}, and {known} in earlier objects"))
        used = [number for (of, _), number in self.field_ids.items() if of == topic]
        if len(set(used)) < len(used):
            self.fail(Violation("field ids", f"{key}: two fields of the topic {topic} have the same id"))

    def _expect_key(self, key: str, sources: list[Source]) -> None:
        tp = sources[0].tp
        offsets = [source.offset for source in sources]
        named = _FILE.fullmatch(key.rsplit("/", 1)[-1])
        if named is None or (named[1], int(named[2]), int(named[3])) != (tp.topic, tp.partition, offsets[0]):
            self.fail(Violation("wrong key", f"{key} starts with offset {offsets[0]} of {tp}"))
        if any(source.tp != tp for source in sources) or offsets != sorted(set(offsets)):
            self.fail(Violation("wrong key", f"{key} holds {[(str(s.tp), s.offset) for s in sources]}"))
        kind, time = _KIND_PATH.search(key), _TIME_PATH.search(key)
        if kind is not None and any(source.kind != kind[1] for source in sources):
            self.fail(Violation("wrong key", f"{key} holds records of other kinds"))
        if time is not None and not self.wallclock and any(_hour(s.time) != (time[1], time[2]) for s in sources):
            self.fail(Violation("wrong key", f"{key} holds records of other hours"))


def generation_of(mark: str) -> int | None:
    """The generation in the metadata of a commit; None if there is none."""
    found = _MARK.fullmatch(mark)
    return int(found[1]) if found else None


def _hour(ms: int) -> tuple[str, str]:
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(ms / 1000, UTC)
    return at.strftime("%Y%m%d"), at.strftime("%H")


def _difference(body: bytes, expected: bytes) -> str:
    """Where an object differs from what it should be."""
    at = next((at for at, pair in enumerate(zip(body, expected, strict=False)) if pair[0] != pair[1]), None)
    where = min(len(body), len(expected)) if at is None else at
    near = slice(max(0, where - 8), where + 24)
    return f"{len(body)} and {len(expected)} bytes, from byte {where} on {body[near]!r} and {expected[near]!r}"
