"""A sink in memory whose objects a test damages and `repair` restores."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.maintenance.repair.accepted_loss import AcceptedLosses, accept_losses
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.kafka_source import KafkaReader, KafkaSource
from sink_job.maintenance.repair.repairer import Repairer, RepairRequest
from sink_job.maintenance.repair.results import RepairReport
from sink_job.verify.evidence import Evidence, collect_evidence
from tests.support.memory_s3 import NOW
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

LOG = SyntheticLog(records=12)
KEYS = [f"topics/log/partition=0/log+0+{first:010d}.json" for first in (0, 5, 10)]
WRITES = ("put", "create_upload", "upload_part", "complete", "abort", "delete")


@dataclass
class RepairFixture:
    """The bucket of a sink that has copied `log`; `right` are its objects as the ledger records them."""

    sink: MemorySinkFixture
    log: SyntheticLog = LOG
    right: dict[str, bytes] = field(default_factory=dict)

    def write(self) -> None:
        """Copies the log."""
        self.sink.run(self.log)
        self.right = self.objects()

    def objects(self) -> dict[str, bytes]:
        """The visible objects."""
        return {key: stored.body for key, stored in self.sink.s3.objects.items() if "/_s3sink/" not in key}

    def below_ledger(self, folder: str) -> dict[str, bytes]:
        """The objects below a folder of the ledger."""
        prefix = f"{self.sink.root}{folder}"
        return {key: stored.body for key, stored in self.sink.s3.objects.items() if key.startswith(prefix)}

    def evidence(self, log: SyntheticLog | None = None, **given: Any) -> Evidence:
        s3: Any = self.sink.s3
        return collect_evidence(self.sink.sink, s3, FileConsumerGroup(log or self.log, self.sink.group), **given)

    def source(self, evidence: Evidence) -> KafkaSource:
        s3: Any = self.sink.s3
        settings: Any = None
        return KafkaSource(s3=s3, settings=settings, evidence=evidence, errors=ErrorsSpec(), now=NOW)

    def reader(self, log: SyntheticLog | None = None) -> KafkaReader:
        log = log or self.log
        return KafkaReader(FileConsumerGroup(log, self.sink.group), InlineEngine(log))

    def repair(
        self,
        keys: Collection[str] = (),
        *,
        dry_run: bool = False,
        log: SyntheticLog | None = None,
        accepts: bool = False,
        **given: Any,
    ) -> RepairReport:
        """Runs `repair`; `log` is what Kafka holds now. `accepts`: with --accept-loss."""
        s3: Any = self.sink.s3
        evidence = self.evidence(log, **given)
        generation = evidence.current.state.generation

        def accept_loss(lost: Sequence[Suspect]) -> AcceptedLosses:
            return accept_losses(self.sink.ledger_access(), generation, lost)

        repairer = Repairer(
            s3,
            self.source(evidence),
            uuid.uuid4().hex,
            connect=lambda: self.reader(log),
            request=RepairRequest(keys=keys, dry_run=dry_run, accept_loss=accept_loss if accepts else None),
        )
        return repairer.run(self.sink.sink.sink_id)

    def findings(self, log: SyntheticLog | None = None) -> list[str]:
        """What `verify` finds."""
        return [f.message for result in self.evidence(log).results() for f in result.findings]

    def saved(self) -> tuple[Any, ...]:
        """The content of the bucket, for `restore`."""
        s3 = self.sink.s3
        return copy.deepcopy((s3.objects, s3.uploads, s3.history))

    def restore(self, saved: tuple[Any, ...]) -> None:
        s3 = self.sink.s3
        s3.objects, s3.uploads, s3.history = copy.deepcopy(saved)
