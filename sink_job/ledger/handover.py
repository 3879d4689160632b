"""The hand-over of ownership: a sink replaces a previous owner that is gone, without a moment with two writers (P11).

Ownership files alone do not keep a sink from writing: a driver of the previous owner may be suspended on a lost node.
So its ledger is fenced first:

1. The new owner replaces the ownership file by one that names both, with a conditional put: of two sinks that take over
   from the same owner one fails.
2. It marks the previous owner's ledger as handed over, claims it (P4), and publishes its closed objects. From then on,
   no driver of the previous owner makes anything visible. One that claims the ledger later reads the mark, checks its
   topics again, and stops with OwnershipConflict.
3. It replaces the ownership file by one that names only itself, and with another ledger the offsets at which it
   continues: the first of each partition that is in no object of the previous owner. The consumer group's may be lower,
   or absent: it is another group, or the previous owner ended before its commit.

A new ledger cannot continue inside of objects: the hand-over fails if a record after these offsets is in an object.

After a crash, step 1 has recorded the previous owner, and the next start continues with step 2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sink_job.api.errors import ConfigurationError, OwnershipConflict
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger import ownership
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.generations import is_split
from sink_job.ledger.ownership import Owner
from sink_job.ledger.session import LedgerAccess, LedgerSession
from sink_job.ledger.state import committable_offsets
from sink_job.s3 import S3Client

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Handover:
    """The hand-over to the sink with the ledger at `root`. `predecessor`: the owner that it replaces, if any.

    `attempt`, `clock` and `store_clock` are those of `LedgerAccess`.
    """

    s3: S3Client
    topics_dir: str
    root: str
    attempt: str
    clock: Callable[[], int]
    store_clock: Callable[[], int | None] = lambda: None
    predecessor: Owner | None = None
    _fenced: dict[Owner, Mapping[TopicPartition, int]] = field(default_factory=dict)

    def fence(self, predecessor: Owner) -> Mapping[TopicPartition, int]:
        """Ends the write access of the previous owner (step 2). Idempotent. Returns the first offset of each
        topic-partition that is in none of its objects.

        If both have the same ledger, it continues that, and the claim of this sink follows. Raises OwnershipConflict if
        the ledger of the previous owner is not found or has another owner, ConfigurationError if no other ledger can
        continue after its objects, and the errors of `LedgerSession`.
        """
        root = ledger_root(self.s3, self.topics_dir, predecessor.sink_id)
        if root == self.root:
            return {}
        if predecessor not in self._fenced:
            self._fenced[predecessor] = self._fence(root, predecessor)
        return self._fenced[predecessor]

    def _fence(self, root: str, predecessor: Owner) -> Mapping[TopicPartition, int]:
        if not ownership.mark_handed_over(self.s3, root, predecessor):
            raise OwnershipConflict(
                f"{predecessor} owns topics of this sink, but not the ledger {self.s3.url_of(root)}: a driver of "
                "it cannot be fenced. If none runs, start this sink once with s3sink run --take-over.",
                predecessor.identity,
            )
        access = LedgerAccess(
            s3=self.s3,
            root=root,
            owner=predecessor,
            attempt=self.attempt,
            clock=self.clock,
            store_clock=self.store_clock,
        )
        if not access.ledger.exists():
            return {}
        session = LedgerSession(access)
        with session.ownership_checked():
            self._publish_closed(session, predecessor)
        return committable_offsets(session.state)

    def _publish_closed(self, session: LedgerSession, predecessor: Owner) -> None:
        """Publishes what a suspended driver could still complete. Raises ConfigurationError if a closed object is lost,
        or if one has records after those of an open one."""
        try:
            published = session.publish()
        except ConfigurationError as error:
            if type(error) is not ConfigurationError:
                raise
            raise ConfigurationError(
                f"{_cannot_continue(predecessor, 'a closed object was lost')} ({error})"
            ) from error
        split = [name for name, p in sorted(session.state.partitions.items()) if is_split(p)]
        if split:
            raise ConfigurationError(
                _cannot_continue(predecessor, f"objects of {split[0]} hold records after open ones")
            )
        _log.info("took over from %s: its ledger is fenced, %d closed objects published", predecessor, published)


def _cannot_continue(predecessor: Owner, reason: str) -> str:
    return (
        f"no other ledger can continue after the objects of {predecessor}: {reason}, so records would be copied twice. "
        f"Nothing was copied. Use a sink with spec.sinkId: {predecessor.sink_id}, which continues this ledger, and "
        "start it once with --take-over-from for each owner that it names."
    )
