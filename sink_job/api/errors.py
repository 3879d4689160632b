"""Every way in which a sink can fail, once, with its exit code and the name it has in status and metrics.

An error is raised where it is known and turned into an exit code, a condition or a line of log in one place. Its
message is a sentence for the person who runs the sink: what is wrong, and what to do about it. It carries no secrets.

Errors travel from Spark's executors to the driver, so each can be pickled: whatever the constructor takes is in `args`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

_WAY_OUT: Final = (
    "The sink stands before it: correct the producer and, where they don't fit the records, spec.format and "
    "spec.partitioner; spec.errors.tolerance: All drops such records and tells of them"
)


class SinkError(Exception):
    """A failure that has a name: the root of all domain errors.

    `exit_code` is what the process ends with, `reason` the CamelCase word for conditions, reports and metrics.
    """

    exit_code: ClassVar[int] = 1
    reason: ClassVar[str] = "InternalError"


class InvalidSpec(SinkError):
    """The manifest is wrong. Carries every mistake found, each `path: value what is allowed`, and no secret."""

    exit_code = 2
    reason = "InvalidSpec"

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(self.mistakes)

    def __str__(self) -> str:
        return "\n".join(self.mistakes)


class LedgerFenced(SinkError):
    """Another driver has claimed this sink's ledger; this one has stopped and publishes and commits nothing more."""

    exit_code = 3
    reason = "LedgerFenced"


class DataError(SinkError):
    """A record that cannot be converted, placed or encoded; the sink stopped before it (`errors.tolerance: None`)."""

    exit_code = 4
    reason = "DataError"

    def __init__(self, topic: str, partition: int, offset: int, message: str) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.message = message
        super().__init__(topic, partition, offset, message)

    def __str__(self) -> str:
        return f"record at {self.topic}-{self.partition} offset {self.offset}: {self.message}. {_WAY_OUT}"


class DataLoss(SinkError):
    """Kafka no longer holds records that are not in S3 yet."""

    exit_code = 5
    reason = "DataLoss"


class ObjectConflict(SinkError):
    """An object with other content stands where this sink has to write one; nothing was overwritten."""

    exit_code = 6
    reason = "ObjectConflict"


class ConfigurationError(SinkError):
    """The surroundings do not fit the manifest: something has to be created, granted or corrected by a person."""

    exit_code = 7
    reason = "ConfigurationError"


class BucketNotFound(ConfigurationError):
    """There is no such bucket, or not in this region."""

    reason = "BucketNotFound"


class AccessDenied(ConfigurationError):
    """S3 or Kafka knows us but does not allow what we ask."""

    reason = "AccessDenied"


class InvalidCredentials(ConfigurationError):
    """S3 or Kafka does not accept the credentials, or there are none."""

    reason = "InvalidCredentials"


class SecretNotFound(ConfigurationError):
    """A secret that the manifest refers to, or a key in it, is not there."""

    reason = "SecretNotFound"


class UnsupportedStore(ConfigurationError):
    """The object store lacks what exactly-once delivery rests on: conditional puts."""

    reason = "UnsupportedStore"


class ClockSkew(ConfigurationError):
    """This host's clock is too far from the object store's; nothing was written with it."""

    reason = "ClockSkew"


class TopicNotFound(ConfigurationError):
    """A topic of the manifest does not exist, or no topic matches its pattern."""

    reason = "TopicNotFound"


class TopicRecreated(ConfigurationError):
    """A topic was deleted and created again: its offsets no longer mean what the ledger says."""

    reason = "TopicRecreated"


class OwnershipConflict(ConfigurationError):
    """Another sink owns this ledger, or this place in the bucket."""

    reason = "OwnershipConflict"


class LedgerLost(ConfigurationError):
    """There are objects of this sink but no ledger that names them: going on could double records."""

    reason = "LedgerLost"


class LedgerUnreadable(ConfigurationError):
    """A file of the ledger, or one that says who owns a place, cannot be read: damaged, or not written by a sink."""

    reason = "LedgerUnreadable"


class ExistingObjects(ConfigurationError):
    """Other offsets would copy records again that are in objects already; nothing was changed."""

    reason = "ExistingObjects"


class TransientError(SinkError):
    """Kafka, S3 or the network did not answer in time. Nothing is lost: the same command may be tried again."""

    exit_code = 75
    reason = "TransientError"


class OutOfMemory(TransientError):
    """A process that runs tasks was killed for want of memory. Nothing is lost; it needs more, or less at a time."""

    reason = "OutOfMemory"


class TooManyExecutorFailures(SinkError):
    """So many executors failed that Spark gave up. Its JVM ends with this code, and so does the driver."""

    exit_code = 11
    reason = "TooManyExecutorFailures"
