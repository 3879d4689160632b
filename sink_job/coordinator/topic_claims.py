"""Claims on the topics' prefixes in the bucket, so that no two sinks write objects of the same topic (P11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger import ownership
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.generations import settings_below
from sink_job.ledger.ownership import Owner, Succession
from sink_job.ledger.state import PartitionState
from sink_job.partitioning.object_keys import layouts
from sink_job.s3 import S3Client


class TopicClaims:
    """Claims of one sink. Each method raises OwnershipConflict when another sink owns a prefix, unless `take_over`."""

    def __init__(
        self,
        s3: S3Client,
        object_settings: ObjectSettings,
        sink_id: str,
        owner: Owner,
        *,
        take_over: bool,
        succession: Succession | None = None,
    ) -> None:
        self._s3 = s3
        self._object_settings = object_settings
        self._root = ledger_root(s3, object_settings.s3.topics_dir, sink_id)
        self._owner = owner
        self._take_over = take_over
        self._succession = succession
        self._former: tuple[Owner, ...] = ()
        self.continues_at: dict[TopicPartition, int] = {}
        """The first offset of each topic-partition that is in no object of a previous owner with another ledger."""

    def acquire_all(self, topics: Iterable[str]) -> None:
        """Claims the ledger's prefix and these topics below the manifest's topicsDir."""
        self._former = ownership.claim_ledger(
            self._s3, self._root, self._owner, take_over=self._take_over, succession=self._succession
        )
        self.continues_at |= self._claim(self._object_settings, topics)

    def _claim(self, object_settings: ObjectSettings, topics: Iterable[str]) -> dict[TopicPartition, int]:
        topics, continues_at = list(topics), dict[TopicPartition, int]()
        for layout in layouts(object_settings):
            continues_at |= ownership.claim_topics(
                self._s3,
                layout,
                self._owner,
                topics,
                take_over=self._take_over,
                succession=self._succession,
                former=self._former,
                ledger=self._root,
            )
        return continues_at

    def continued(self, partitions: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
        """New partitions of the ledger, those of a previous owner with another ledger from where that one ends."""
        at = self.continues_at
        return {tp: PartitionState.start(at[tp]) if tp in at else p for tp, p in partitions.items()}

    def check_after_claim(self, topics: Iterable[str]) -> None:
        """Checks that no other sink has taken over between `acquire_all` and the claim of the ledger."""
        if ownership.is_handed_over(self._s3, self._root, self._owner):
            self.acquire_all(topics)

    def acquire_generation(self, topics: Iterable[str], topics_dir: str | None) -> None:
        """Claims these topics below the topicsDir that an offset reset has chosen, if it has chosen another one."""
        if topics_dir not in (None, self._object_settings.s3.topics_dir):
            self._claim(settings_below(self._object_settings, topics_dir), topics)
