"""All errors of a sink, each with its exit code and its reason in status and metrics.

One place turns an error into an exit code, a condition or a log line. The message is a sentence for the operator of the
sink: what happened, where, and what to do. It contains no secrets.

Spark sends errors from its executors to the driver, so each error can be pickled: `args` holds all arguments of the
constructor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

_ACTION: Final = (
    "The sink has stopped at this record. Fix the producer or spec.format / spec.partitioner. {skip}. To drop and log "
    "all such records: spec.errors.tolerance: All"
)


def how_to_skip(topic: str, partition: int, offset: int, sink: str) -> str:
    """What passes over one record, without a full stop. `sink` are the arguments of `kubectl s3sink` that name the
    sink."""
    return (
        f"To pass over this record alone: kubectl s3sink skip {sink} {topic}-{partition}@{offset}, or "
        f"spec.errors.skip: [{{topic: {topic}, partition: {partition}, offset: {offset}}}]"
    )


class SinkError(Exception):
    """Base class of all domain errors.

    `exit_code` is the exit code of the process. `reason` is the CamelCase name in conditions, reports and metrics.
    """

    exit_code: ClassVar[int] = 1
    reason: ClassVar[str] = "InternalError"


class InvalidSpec(SinkError):
    """The manifest is invalid. Lists every error as `path: value, and what is allowed`, without secrets."""

    exit_code = 2
    reason = "InvalidSpec"

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(self.errors)


class InvalidConnector(SinkError):
    """The input is not the configuration of a connector."""

    exit_code = 2
    reason = "InvalidConnector"


class LedgerFenced(SinkError):
    """Another driver has claimed the ledger of this sink. This driver has stopped; it publishes and commits nothing."""

    exit_code = 3
    reason = "LedgerFenced"


class DataError(SinkError):
    """A record cannot be converted, assigned to a path or encoded, and `errors.tolerance` is None.

    The sink has stopped before this record. `sink` are the arguments of `kubectl s3sink` that name the sink.
    """

    exit_code = 4
    reason = "DataError"

    def __init__(self, topic: str, partition: int, offset: int, message: str, sink: str = "NAME") -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.message = message
        self.sink = sink
        super().__init__(topic, partition, offset, message, sink)

    def __str__(self) -> str:
        action = _ACTION.format(skip=how_to_skip(self.topic, self.partition, self.offset, self.sink))
        return f"record at {self.topic}-{self.partition} offset {self.offset}: {self.message}. {action}"


class TooManyRejected(DataError):
    """A round has rejected too many records of a topic-partition, although `errors.tolerance` is All.

    Nothing of the round was recorded. `offset` and `message` are those of the first rejected record; `share` is
    `errors.deadLetters.maxShare`.
    """

    reason = "TooManyRejected"

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        message: str,
        rejected: int,
        records: int,
        share: float,
        sink: str = "NAME",
    ) -> None:
        super().__init__(topic, partition, offset, message, sink)
        self.rejected = rejected
        self.records = records
        self.share = share
        self.args = (topic, partition, offset, message, rejected, records, share, sink)

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: {self.rejected:,} of {self.records:,} records of the round "
            f"({self.rejected / self.records:.0%}) were rejected, more than spec.errors.deadLetters.maxShare "
            f"({self.share:g}) allows. The first one is at offset {self.offset}: {self.message}. Nothing of the round "
            "was recorded. Fix the producer or spec.format / spec.partitioner. If these records may be left out, set "
            f"spec.errors.deadLetters.maxShare: 1. {how_to_skip(self.topic, self.partition, self.offset, self.sink)}"
        )


class DataLoss(SinkError):
    """Kafka has deleted records that are not in S3 yet."""

    exit_code = 5
    reason = "DataLoss"


class ObjectConflict(SinkError):
    """An object with different content already exists under a key of this sink. Nothing was overwritten."""

    exit_code = 6
    reason = "ObjectConflict"


class ConfigurationError(SinkError):
    """The environment does not match the manifest: the user has to create, grant or correct something."""

    exit_code = 7
    reason = "ConfigurationError"


class BucketNotFound(ConfigurationError):
    """The bucket does not exist, or not in this region."""

    reason = "BucketNotFound"


class AccessDenied(ConfigurationError):
    """S3 or Kafka accepts the credentials but does not allow the operation."""

    reason = "AccessDenied"


class InvalidCredentials(ConfigurationError):
    """S3 or Kafka does not accept the credentials, or no credentials are set."""

    reason = "InvalidCredentials"


class SecretNotFound(ConfigurationError):
    """A secret that the manifest references, or a key in it, does not exist."""

    reason = "SecretNotFound"


class ConfigMapNotFound(ConfigurationError):
    """A ConfigMap that the manifest references, or a key in it, does not exist."""

    reason = "ConfigMapNotFound"


class UnsupportedStore(ConfigurationError):
    """The object store has no conditional writes, which exactly-once delivery requires."""

    reason = "UnsupportedStore"


class ClockSkew(ConfigurationError):
    """The clock of this host differs too much from the clock of the object store. Nothing was written."""

    reason = "ClockSkew"


class TopicNotFound(ConfigurationError):
    """A topic of the manifest does not exist, or no topic matches the pattern."""

    reason = "TopicNotFound"


class TopicRecreated(ConfigurationError):
    """A topic was deleted and created again: the offsets in the ledger belong to the deleted topic."""

    reason = "TopicRecreated"


class OwnershipConflict(ConfigurationError):
    """Another sink owns this ledger, or this directory in the bucket.

    `owner` is its identity as text (`sink_job.api.owner`), None if unknown.
    """

    reason = "OwnershipConflict"

    def __init__(self, message: str, owner: str | None = None) -> None:
        self.message = message
        self.owner = owner
        super().__init__(message, owner)

    def __str__(self) -> str:
        return self.message


class LedgerLost(ConfigurationError):
    """Objects of this sink exist without a ledger. A new ledger could write duplicate records."""

    reason = "LedgerLost"


class LedgerUnreadable(ConfigurationError):
    """A ledger file or an ownership file cannot be read: it is damaged, or no sink wrote it."""

    reason = "LedgerUnreadable"


class RebuildRejected(ConfigurationError):
    """Kafka returns the records of an object that has to be rebuilt, and this version does not select them. No record
    is lost, and nothing was changed."""

    reason = "RebuildRejected"


class RegistryChanged(ConfigurationError):
    """The schema registry returns another schema for an id than the ledger has. Nothing was written."""

    reason = "RegistryChanged"


class RegistryNotFound(ConfigurationError):
    """The URL of the schema registry is that of another service, or of a port without TLS. Nothing was written."""

    reason = "RegistryNotFound"


class ExistingObjects(ConfigurationError):
    """The new offsets would copy records that are already in objects. Nothing was changed."""

    reason = "ExistingObjects"


class TableNotRegistered(ConfigurationError):
    """A registration has stopped. Nothing was added to the table; the sink continues to copy."""

    reason = "TableNotRegistered"


class TableReplaced(TableNotRegistered):
    """The table is another one than that of the last registration, or does not exist any more."""

    reason = "TableReplaced"


class TableRolledBack(TableNotRegistered):
    """The table was rolled back behind the last registration: it may lack objects."""

    reason = "TableRolledBack"


class TablePositionMissing(TableNotRegistered):
    """The table has lost the property with the position of the sink."""

    reason = "TablePositionMissing"


class TablePositionLower(TableNotRegistered):
    """The position in the table is lower than that of the last registration."""

    reason = "TablePositionLower"


class TableIncompatible(TableNotRegistered):
    """The columns of an object do not fit those of the table."""

    reason = "TableIncompatible"


class TransientError(SinkError):
    """Kafka, S3 or the network did not respond in time. No data is lost, and the command can be retried."""

    exit_code = 75
    reason = "TransientError"


class TopicWaitsForTable(TransientError):
    """A topic is not read before the catalog has given the field ids of its table. Nothing was copied of it."""

    reason = "TopicWaitsForTable"

    def __init__(self, message: str, *, table: str = "", is_final: bool = True) -> None:
        """`table` is the name of the table. `is_final`: a run that has an end of its own ends with it."""
        super().__init__(message)
        self.table = table
        self.is_final = is_final


class OutOfMemory(TransientError):
    """A process that runs tasks was OOM-killed. No data is lost. Give it more memory, or run fewer tasks at a time."""

    reason = "OutOfMemory"


class SchemaNotFound(TransientError):
    """The schema registry does not know the schema id of a record, also after several requests. Nothing was dropped."""

    reason = "SchemaNotFound"


class TooManyExecutorFailures(SinkError):
    """Spark has stopped because too many executors failed. Its JVM and the driver exit with this code."""

    exit_code = 11
    reason = "TooManyExecutorFailures"
