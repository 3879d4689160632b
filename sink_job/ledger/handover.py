"""The hand-over of ownership: a sink replaces a previous owner that is gone, without a moment with two writers (P11).

Ownership files alone do not keep a sink from writing: a driver of the previous owner may be suspended on a lost node.
So its ledger is fenced first:

1. The new owner replaces the ownership file by one that names both, with a conditional put: of two sinks that take over
   from the same owner one fails.
2. It marks the previous owner's ledger as handed over, claims it (P4), and publishes its closed objects. From then on,
   no driver of the previous owner makes anything visible. One that claims the ledger later reads the mark, checks its
   topics again, and stops with OwnershipConflict.
3. It replaces the ownership file by one that names only itself.

After a crash, step 1 has recorded the previous owner, and the next start continues with step 2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from sink_job.api.errors import ConfigurationError, OwnershipConflict
from sink_job.ledger import ownership
from sink_job.ledger.ownership import Owner
from sink_job.ledger.session import LedgerAccess, LedgerSession
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
    _fenced: set[Owner] = field(default_factory=set)

    def fence(self, predecessor: Owner) -> None:
        """Ends the write access of the previous owner (step 2). Idempotent.

        The claim of this sink follows if both have the same ledger. Raises OwnershipConflict if the ledger of the
        previous owner is not found or has another owner, and the errors of `LedgerSession`.
        """
        root = ownership.ledger_root(self.topics_dir, predecessor.sink_id)
        if root == self.root or predecessor in self._fenced:
            return
        if not ownership.mark_handed_over(self.s3, root, predecessor):
            raise OwnershipConflict(
                f"{predecessor} owns topics of this sink, but not the ledger s3://{self.s3.bucket}/{root}: a driver of "
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
        if access.ledger.exists():
            self._publish_closed(LedgerSession(access), predecessor)
        self._fenced.add(predecessor)

    def _publish_closed(self, session: LedgerSession, predecessor: Owner) -> None:
        """Publishes what a suspended driver could still complete. A lost upload cannot be completed by anyone."""
        try:
            with session.ownership_checked():
                published = session.publish()
        except ConfigurationError as error:
            if type(error) is not ConfigurationError:
                raise
            _log.warning("%s: not all closed objects can be published: %s", predecessor, error)
        else:
            _log.info("took over from %s: its ledger is fenced, %d closed objects published", predecessor, published)
