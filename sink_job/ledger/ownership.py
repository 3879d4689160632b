"""Ownership of ledgers and topic directories, and the checks before a ledger is created or continued (P5, P11)."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol, Self

import msgspec

from sink_job.api.errors import (
    AccessDenied,
    ConfigurationError,
    LedgerLost,
    LedgerUnreadable,
    OwnershipConflict,
    TopicRecreated,
    TransientError,
    UnsupportedStore,
)
from sink_job.api.field_types import RESERVED
from sink_job.api.owner import OwnerIdentity
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger import files
from sink_job.ledger.first_claim import ledger_place
from sink_job.ledger.state import KafkaIdentity
from sink_job.partitioning.object_keys import extension, is_internal, listing_prefixes, parse_key
from sink_job.s3 import Conflict, NotFound, PreconditionFailed, S3Client

_NO_ETAG = '"00000000000000000000000000000000"'

MAX_ACQUIRE_ATTEMPTS = 5
"""Maximum number of attempts to write an ownership file."""


class Owner(msgspec.Struct, frozen=True):
    """The identity of a sink: its cluster (an id, or the host name outside of Kubernetes), namespace, name and sink
    id."""

    cluster: str
    namespace: str
    name: str
    sink_id: str

    @property
    def identity(self) -> str:
        """`cluster/namespace/name/sinkId`."""
        return str(OwnerIdentity(self.cluster, self.namespace, self.name, self.sink_id))

    @classmethod
    def parse(cls, identity: str) -> Self:
        """Raises ValueError for text that is no identity."""
        return cls(*OwnerIdentity.parse(identity))

    def __str__(self) -> str:
        return f"S3Sink {self.namespace}/{self.name} (sinkId {self.sink_id}) of {self.cluster}"


class _OwnershipFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of an ownership file. `predecessor`: a previous owner that is not fenced yet. `handed_over`: of a
    ledger; another sink has taken over topics of the owner. `continues_at`: of a topic that was taken over from a sink
    with another ledger; by partition, the first offset that is in no object of that sink. `former`: of a ledger; the
    owners before this one, in order. `ledger`: the URL of the owner's ledger, if it is in another place
    (`spec.s3.ledger`); of a topic below the topicsDir of an offset reset, the prefix of the owner's ledger in another
    topicsDir. `objects`: of the file beside a ledger in another place; the URL that the ledger would have below the
    topicsDir of its objects."""

    cluster: str
    namespace: str
    name: str
    sink_id: str
    predecessor: Owner | None = None
    handed_over: bool = False
    continues_at: dict[int, int] = {}
    former: tuple[Owner, ...] = ()
    ledger: str = ""
    objects: str = ""

    @property
    def owner(self) -> Owner:
        return Owner(self.cluster, self.namespace, self.name, self.sink_id)

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The former owners, a previous owner that is not fenced yet, and the owner, in this order."""
        return (*self.former, *filter(None, (self.predecessor, self.owner)))

    @classmethod
    def of(
        cls,
        owner: Owner,
        *,
        predecessor: Owner | None = None,
        continues_at: Mapping[int, int] | None = None,
        former: Iterable[Owner] = (),
        ledger: str = "",
    ) -> Self:
        return cls(
            owner.cluster,
            owner.namespace,
            owner.name,
            owner.sink_id,
            predecessor=predecessor,
            continues_at=dict(continues_at or {}),
            former=tuple(each for each in dict.fromkeys(former) if each != owner),
            ledger=ledger,
        )


class Succession(Protocol):
    """A hand-over from a previous owner: `sink_job.ledger.handover.Handover`."""

    @property
    def predecessor(self) -> Owner | None:
        """The owner that may be replaced."""
        ...

    def fence(self, predecessor: Owner) -> Mapping[TopicPartition, int]:
        """Ends the write access of a previous owner. Returns where a sink with another ledger continues: the first
        offset of each topic-partition that is in no object of the previous owner."""
        ...


def _internal(topics_dir: str) -> str:
    return f"{topics_dir}/{RESERVED}/" if topics_dir else f"{RESERVED}/"


def claims_prefix(topics_dir: str) -> str:
    """The key prefix of topic claims; `<topic>/<extension without its dot>.json` follows."""
    return f"{_internal(topics_dir)}topics/"


def acquire(
    s3: S3Client,
    key: str,
    owner: Owner,
    what: str,
    *,
    take_over: bool,
    succession: Succession | None = None,
    topic: str | None = None,
    former: Collection[Owner] = (),
    ledger: str = "",
    predecessor: Owner | None = None,
) -> _OwnershipFile:
    """Writes the ownership file `key` of `what` unless it exists; with `take_over` it replaces an existing file, with
    `succession` that of a predecessor, which is fenced first. `topic`: if it is the file of a topic; then `former` are
    the previous owners of this sink's ledger, which are replaced too. `ledger`: the prefix of this sink's ledger if it
    is in another topicsDir than the topic. `predecessor`: the owner of the topic's other files, with which a file that
    does not exist is taken over from it, too. Returns the content of the file.

    Unless `take_over`, raises OwnershipConflict when the file names another owner, ConfigurationError when it names a
    ledger of this sinkId in another topicsDir, and LedgerUnreadable. Raises TransientError when the store rejects each
    attempt, and UnsupportedStore when `succession` needs If-Match and the store ignores it.
    """
    claim = _OwnershipFile.of(owner, predecessor=predecessor, ledger=ledger)
    if take_over:
        claim = _kept(s3, key, claim, what, topic)
    for _ in range(MAX_ACQUIRE_ATTEMPTS):
        found, etag = _write_or_read(s3, key, claim, what, take_over)
        if found is claim and claim.predecessor is None:
            return claim
        if found is None or take_over:
            continue
        _check_no_objects_of_another(s3, key, found, what)
        if found.owner.sink_id == owner.sink_id and found.ledger != ledger:
            raise ledger_place.other_ledger(s3, what, str(found.owner), found.ledger, ledger)
        if found.owner == owner and found.predecessor is None:
            return found
        previous = found.predecessor if found.owner == owner else found.owner
        replaceable = found.owner == owner or previous in former
        if succession is None or not (replaceable or previous == succession.predecessor):
            raise _conflict(what, owner, found, None if succession is None else succession.predecessor)
        try:
            return _replace_owner(s3, key, etag, claim, found, succession, topic)
        except (PreconditionFailed, Conflict):
            continue  # changed meanwhile, or the reply was lost
    raise _not_written(s3, key)


def _write_or_read(
    s3: S3Client, key: str, claim: _OwnershipFile, what: str, take_over: bool
) -> tuple[_OwnershipFile | None, str]:
    """Writes the file, unless it exists and must not be replaced; returns `claim`, or what is stored, with its ETag."""
    try:
        return claim, s3.put(key, msgspec.json.encode(claim), only_if_absent=not take_over).etag
    except (PreconditionFailed, Conflict):
        return _read(s3, key, what)
    except AccessDenied:  # some stores deny the put if the file exists and is locked
        found, etag = _read(s3, key, what)
        if found is None or take_over:
            raise
        return found, etag


def _not_written(s3: S3Client, key: str) -> TransientError:
    return TransientError(
        f"{s3.url_of(key)} cannot be written: the store rejected {MAX_ACQUIRE_ATTEMPTS} attempts, and the object "
        "does not exist. Check the store's health, then try again."
    )


def _kept(s3: S3Client, key: str, claim: _OwnershipFile, what: str, topic: str | None) -> _OwnershipFile:
    """The claim that replaces whatever is stored, with what stays true: the previous owners of a ledger, and where the
    topic of the same owner continues."""
    try:
        found, _ = _read(s3, key, what)
    except LedgerUnreadable:
        return claim
    if found is None:
        return claim
    _check_no_objects_of_another(s3, key, found, what)
    if topic is None:
        return _OwnershipFile.of(claim.owner, former=found.owners, ledger=claim.ledger)
    same = (found.owner, found.ledger) == (claim.owner, claim.ledger)
    return msgspec.structs.replace(claim, continues_at=found.continues_at) if same else claim


def _replace_owner(
    s3: S3Client,
    key: str,
    etag: str,
    claim: _OwnershipFile,
    found: _OwnershipFile,
    succession: Succession,
    topic: str | None,
) -> _OwnershipFile:
    """Replaces an owner by that of `claim`, or completes that, in the steps of `sink_job.ledger.handover`; returns the
    content of the file. Raises PreconditionFailed or Conflict if the file has changed."""
    owner, continues_at = claim.owner, dict(found.continues_at)
    former = found.owners if topic is None else ()

    def fence(previous: Owner) -> None:
        ends = succession.fence(previous)
        continues_at.update({tp.partition: offset for tp, offset in ends.items() if tp.topic == topic})

    predecessor = found.predecessor
    if found.owner != owner:
        _check_if_match(s3, key, found)
        if found.predecessor is not None:  # the previous owner has not completed its own hand-over
            fence(found.predecessor)
        predecessor = found.owner
        taken = _OwnershipFile.of(
            owner, predecessor=predecessor, continues_at=continues_at, former=former, ledger=claim.ledger
        )
        etag = _replace(s3, key, etag, taken)
    assert predecessor is not None
    fence(predecessor)
    if topic is not None:
        for other in _other_extensions(s3, key, topic, predecessor):
            what = f"the claim {s3.url_of(other)} of topic {topic}"
            acquire(s3, other, owner, what, take_over=False, succession=succession, topic=topic, ledger=claim.ledger)
    completed = _OwnershipFile.of(owner, continues_at=continues_at, former=former, ledger=claim.ledger)
    _replace(s3, key, etag, completed)
    return completed


def _other_extensions(s3: S3Client, key: str, topic: str, owner: Owner) -> Iterator[str]:
    """The keys of this owner's claims of the topic of `key` with other extensions: a sink that takes over with another
    output or compression has no such claim in its way."""
    for listed in s3.list(f"{key.rpartition('/')[0]}/"):
        found, _ = _read(s3, listed.key, f"topic {topic}") if listed.key != key else (None, "")
        if found is not None and owner == found.owner:
            yield listed.key


def _conflict(what: str, owner: Owner, found: _OwnershipFile, given: Owner | None) -> ConfigurationError:
    """The error for a file of another owner. `given`: the owner that --take-over-from names."""
    if found.owner == owner:
        return ConfigurationError(
            f"{what} is being taken over from {found.predecessor}. Run this sink once, which completes that, then "
            "repeat this command."
        )
    if given is not None:
        return OwnershipConflict(
            f"{what} belongs to {found.owner}; this is {owner}, and --take-over-from names another owner, "
            f"{given.identity}. If the sink that it belongs to was deleted for good, start this one once with "
            f"--take-over-from={found.owner.identity}.",
            found.owner.identity,
        )
    return OwnershipConflict(
        f"{what} belongs to {found.owner}; this is {owner}. Choose another topicsDir, topic or sinkId. If that sink "
        f"was deleted for good, start this one once with --take-over-from={found.owner.identity}.",
        found.owner.identity,
    )


def _replace(s3: S3Client, key: str, etag: str, content: _OwnershipFile) -> str:
    """Replaces the file with this ETag; returns the new one. Raises PreconditionFailed if the file has changed."""
    return s3.put(key, msgspec.json.encode(content), if_match=etag).etag


def _check_if_match(s3: S3Client, key: str, content: _OwnershipFile) -> None:
    """Raises UnsupportedStore for a store that ignores If-Match: of two sinks that take over both would succeed. It
    writes the same content, so nothing changes in such a store either."""
    with contextlib.suppress(PreconditionFailed, Conflict):
        s3.put(key, msgspec.json.encode(content), if_match=_NO_ETAG)
        raise UnsupportedStore(
            f"{s3.url}: the store ignores If-Match, so no sink can take over from another one. Use a store with "
            "conditional writes, such as Amazon S3, or start once with --take-over while no driver of the other sink "
            "runs."
        )


def _read(s3: S3Client, key: str, what: str) -> tuple[_OwnershipFile | None, str]:
    """The ownership file and its ETag; None if it does not exist. Raises LedgerUnreadable.

    The ETag is read first: if the file changes in between, a replacement by this ETag fails.
    """
    head = s3.head(key)
    if head is None:
        return None, ""
    try:
        return files.read(s3, key, _OwnershipFile), head.etag
    except NotFound:
        return None, ""
    except LedgerUnreadable as error:
        raise LedgerUnreadable(
            f"{error} The object names the owner of {what}. If no other sink uses that, start once with --take-over, "
            "which replaces the object."
        ) from None


def mark_handed_over(s3: S3Client, root: str, owner: Owner) -> bool:
    """Marks the ledger of `owner` at `root` as handed over; False if it does not exist or has another owner.

    Raises TransientError when the file changes in each attempt.
    """
    key = ledger_place.owner_file(s3, root)
    for _ in range(MAX_ACQUIRE_ATTEMPTS):
        found, etag = _read(s3, key, f"the ledger {s3.url_of(root)}")
        if found is None or found.owner != owner:
            return False
        if found.ledger != ledger_place.recorded(s3, root):
            what = f"the ledger of sinkId {owner.sink_id}"
            raise ledger_place.other_ledger(s3, what, str(owner), found.ledger, ledger_place.recorded(s3, root))
        if found.handed_over:
            return True
        try:
            _replace(s3, key, etag, msgspec.structs.replace(found, handed_over=True))
        except (PreconditionFailed, Conflict):
            continue
        return True
    raise TransientError(f"{s3.url_of(key)} changes again and again. Try again.")


def is_handed_over(s3: S3Client, root: str, owner: Owner) -> bool:
    """Whether topics of `owner`, or its ledger at `root`, may have been taken over. A driver reads it after its claim:
    then either it has been fenced by that claim's successor, or it sees the mark."""
    found, _ = _read(s3, ledger_place.owner_file(s3, root), f"the ledger {s3.url_of(root)}")
    return found is None or found.owner != owner or found.handed_over


def claim_ledger(
    s3: S3Client, root: str, owner: Owner, *, take_over: bool = False, succession: Succession | None = None
) -> tuple[Owner, ...]:
    """Claims the ledger at `root`. Returns its previous owners. Raises as `acquire`."""
    what, key = f"the ledger {s3.url_of(root)}", ledger_place.owner_file(s3, root)
    place = ledger_place.recorded(s3, root)
    if not place:
        return acquire(s3, key, owner, what, take_over=take_over, succession=succession).former
    home = s3.url_of(ledger_place.home_of(s3, root))
    is_named = _names_objects(s3, root, home, what)
    former = acquire(s3, key, owner, what, take_over=take_over, succession=succession, ledger=place).former
    if not is_named:
        _name_objects(s3, root, owner, home, what)
    return former


def _check_no_objects_of_another(s3: S3Client, key: str, found: _OwnershipFile, what: str) -> None:
    """For a ledger without `spec.s3.ledger`: raises ConfigurationError if its file `key` is that of a sink with it."""
    if found.objects:
        raise ledger_place.other_objects(what, str(found.owner), found.objects, s3.url_of(key.rpartition("/")[0]))


def _name_objects(s3: S3Client, root: str, owner: Owner, home: str, what: str) -> None:
    """Writes beside a ledger in another place whose objects it has. It is the key of the ownership file of a sink
    that has its ledger there without `spec.s3.ledger`."""
    claim = msgspec.structs.replace(_OwnershipFile.of(owner, ledger=s3.url_of(root)), objects=home)
    for _ in range(MAX_ACQUIRE_ATTEMPTS):
        with contextlib.suppress(PreconditionFailed, Conflict):
            s3.put(f"{root}owner.json", msgspec.json.encode(claim), only_if_absent=True)
            return
        if _names_objects(s3, root, home, what):
            return
    raise _not_written(s3, f"{root}owner.json")


def _names_objects(s3: S3Client, root: str, home: str, what: str) -> bool:
    """Whether the ledger at `root` names `home` as the place of its objects; False if it names none. Raises
    ConfigurationError for another one: elements of prefix, bucket and topicsDir can be divided in several ways."""
    found, _ = _read(s3, f"{root}owner.json", what)
    if found is None or found.objects == home:
        return found is not None
    raise ledger_place.other_objects(what, str(found.owner), found.objects, home)


def claim_topics(
    s3: S3Client,
    object_settings: ObjectSettings,
    owner: Owner,
    topics: Iterable[str],
    *,
    take_over: bool = False,
    succession: Succession | None = None,
    former: Collection[Owner] = (),
    ledger: str | None = None,
) -> dict[TopicPartition, int]:
    """Claims topicsDir, topic and extension of each topic. `former`: the previous owners of this sink's ledger, whose
    claims are its own: a previous owner may have had other topics or another extension. `ledger`: the prefix of the
    sink's ledger, by default the one below this topicsDir. Returns the first offset of each topic-partition that is in
    no object of a previous owner with another ledger. Raises as `acquire`."""
    prefix, suffix = claims_prefix(object_settings.s3.topics_dir), extension(object_settings)
    home = ledger_place.ledger_root(s3, object_settings.s3.topics_dir, owner.sink_id)
    ledger = ledger_place.recorded(s3, ledger or home) or ("" if ledger in (None, home) else ledger)
    previous = None if succession is None or take_over else succession.predecessor
    continues_at: dict[TopicPartition, int] = {}
    for topic in topics:
        what = f"topic {topic} as {suffix} below {s3.url}/{object_settings.s3.topics_dir}"
        key = f"{prefix}{topic}/{suffix.lstrip('.')}.json"
        has_others = previous is not None and any(_other_extensions(s3, key, topic, previous))
        claim = acquire(
            s3,
            key,
            owner,
            what,
            take_over=take_over,
            succession=succession,
            topic=topic,
            former=former,
            ledger=ledger or "",
            predecessor=previous if has_others else None,
        )
        continues_at |= {TopicPartition(topic, partition): at for partition, at in claim.continues_at.items()}
    return continues_at


def recreated_topics(recorded: KafkaIdentity | None, current: Mapping[str, str]) -> list[str]:
    """The topics whose `current` id is another one than in the ledger."""
    known = {} if recorded is None else recorded.topics
    return [topic for topic, topic_id in current.items() if known.get(topic, topic_id) != topic_id]


def check_topic_ids(recorded: KafkaIdentity | None, current: KafkaIdentity) -> KafkaIdentity:
    """The ids to record: those of the ledger and the current ones.

    Raises TopicRecreated when the cluster or a topic has another id than in the ledger.
    """
    if recorded is None:
        return current
    if recorded.cluster != current.cluster:
        raise TopicRecreated(
            f"the ledger was written from Kafka cluster {recorded.cluster}, but bootstrapServers are those of cluster "
            f"{current.cluster}. Choose another sinkId and topicsDir for another cluster."
        )
    for topic in recreated_topics(recorded, current.topics):
        raise TopicRecreated(
            f"topic {topic} was deleted and created again (its id was {recorded.topics[topic]} and is "
            f"{current.topics[topic]}): the offsets in the ledger are not those of the new topic. Reset the sink's "
            "offsets (state: Stopped, and spec.offsets.reset to Earliest with onExisting: NewPrefix; or s3sink "
            "reset-offsets), or choose another sinkId and topicsDir."
        )
    return KafkaIdentity(recorded.cluster, {**recorded.topics, **current.topics})


def check_no_objects(s3: S3Client, object_settings: ObjectSettings, starts: Mapping[TopicPartition, int]) -> None:
    """For a missing ledger: raises LedgerLost when an object of this sink has its first offset at or above the
    start."""
    prefixes = listing_prefixes([object_settings], {tp.topic for tp in starts})
    for listed in (each for prefix in prefixes for each in s3.list(prefix)):
        parsed = None if is_internal(object_settings, listed.key) else parse_key(object_settings, listed.key)
        if parsed is None:
            continue
        start = starts.get(TopicPartition(parsed.topic, parsed.partition))
        if start is not None and parsed.first >= start:
            raise LedgerLost(
                f"there is no ledger, but {s3.url_of(listed.key)} begins at or after offset {start}, the "
                f"start offset of {parsed.topic}-{parsed.partition}: its records would be copied twice. Restore "
                "the ledger (_s3sink/), move such objects away, or set the group's offsets to offsets after them. "
                "If they are a connector's, --from-connector (kafka.existingObjects: Accept) compares them with "
                "Kafka and starts behind them. --start-new-ledger skips this check."
            )
