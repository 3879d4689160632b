"""What the topic-partitions of one task have in common: the settings and what they make of records, the store, and the
staging objects that their leftovers go to and come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sink_job.api.spec import ErrorsSpec, ObjectSettings, OnNullValue, Tolerance
from sink_job.ledger.staging import StagingReader, StagingWriter, new_prefix
from sink_job.s3 import S3Settings, connect
from sink_job.writer.record_pipeline import RecordPipeline


@dataclass(frozen=True)
class RoundParameters:
    """What all tasks of a round share; picklable, and without a secret in it.

    `shaping` is the JSON of the settings in force and `settings` the number of the claim that holds them. `root` is
    where the ledger stands. `now` is the round's clock in ms; sizes are bytes.
    """

    s3: S3Settings
    root: str
    shaping_json: str
    settings_record: int
    tolerant: bool
    on_null: OnNullValue
    epoch: int
    round: int
    now: int
    budget: int
    threads: int
    part_buffers: int


class TaskAttempt:
    """One try of one task. Its leftovers are staged when it ends, before a result leaves it; a try that fails leaves at
    most a staging object that nobody names, for the clean-up."""

    def __init__(self, settings: RoundParameters) -> None:
        self.settings = settings
        self.shaping, self.pipeline = parsed_shaping(settings)
        self.s3 = connect(settings.s3)
        self.staging = StagingWriter(self.s3, new_prefix(settings.root, settings.epoch, settings.round))
        self.staged = StagingReader(self.s3)
        self._reported = self.s3.meter.snapshot()
        self._promised = 0

    def request_counts(self) -> tuple[dict[str, int], int]:
        """Requests to the store since the last call, by kind, and how many of them were repeats.

        The put of the staging object under way counts already: when it is sent, nobody tells of it any more.
        """
        now, promised = self.s3.meter.snapshot(), int(self.staging.waiting)
        used = now - self._reported
        requests = dict(used.requests)
        if promised != self._promised:
            requests["PutObject"] = requests.get("PutObject", 0) + promised - self._promised
        self._reported, self._promised = now, promised
        return requests, sum(used.retries.values())

    def close(self) -> None:
        """Stages what is left. Raises what the store raises."""
        self.staging.flush()


def parsed_shaping(settings: RoundParameters) -> tuple[ObjectSettings, RecordPipeline]:
    """The settings that shape bytes and keys, and what they make of a batch; parsed once a process."""
    return _shaped(settings.shaping_json, settings.tolerant, settings.on_null)


@cache
def _shaped(shaping: str, tolerant: bool, on_null: OnNullValue) -> tuple[ObjectSettings, RecordPipeline]:
    settings = ObjectSettings.model_validate_json(shaping)
    errors = ErrorsSpec(tolerance=Tolerance.ALL if tolerant else Tolerance.NONE, on_null_value=on_null)
    return settings, RecordPipeline.of(settings, errors)
