"""The inferred schemas of a sink's topics: the driver puts the first one of a topic into the ledger, for ever.

Between two rounds the driver merges what the tasks of the last round have observed of a topic. It puts the schema by a
conditional put, before a record under it is decoded. If the ledger has one already, of an earlier driver or of another
one at the same time, that one counts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from sink_job.api.enums import UnknownFields
from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.schema_check import check_values
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.json.typed import field_list
from sink_job.json.typed.inference import SampledValues, inferred_fields
from sink_job.json.typed.unknown_properties import COLUMN
from sink_job.ledger.schemas.schema_store import SchemaStore

_log: Final = logging.getLogger(__name__)
_MAX_DOUBTS: Final = 10
"""Maximum number of fields that a warning names."""


class SchemaInferrer:
    """The inferred schemas of one driver process. Not thread-safe."""

    def __init__(self, store: SchemaStore, settings: FormatSpec) -> None:
        self._store = store
        self._settings = settings
        self._leave_out = (COLUMN,) if settings.unknown_fields is UnknownFields.JSON else ()
        self.topics: frozenset[str] = frozenset()
        """The topics with an inferred schema in the ledger."""

    def infer(self, observed: Mapping[TopicPartition, SampledValues]) -> None:
        """Infers the schema of each topic of which tasks have observed records, unless the ledger has one.

        Raises ConfigurationError if the output cannot have values under the schema: then it is not put, because it
        would count for ever. Raises the errors of the store, and as `SchemaStore.put_first`.
        """
        for topic, of_topic in _by_topic(observed).items():
            schema = inferred_schema(of_topic, self._leave_out)
            if self._store.get(topic, schema.id) is None:
                self._check(topic, schema, "inferred from its first records")
            stored = self._store.put_first(topic, schema)
            self._check(topic, stored, "in the ledger")
            if topic not in self.topics:
                _log_schema(topic, stored, is_new=stored == schema)
                _log_doubts(topic, of_topic if stored == schema else SampledValues())
            self.topics |= {topic}

    def _check(self, topic: str, schema: RegisteredSchema, how: str) -> None:
        try:
            check_values(schema, self._settings)
        except InvalidSchema as error:
            raise ConfigurationError(
                f"topic {topic}: the schema {how} cannot be used with the output {self._settings.output}: {error}. "
                "Remove spec.format.inference, and set spec.format.schema to a schema of the topic's values."
            ) from None


def inferred_schema(observed: SampledValues, leave_out: tuple[str, ...] = ()) -> RegisteredSchema:
    """The schema as the ledger keeps it."""
    text = field_list.field_list_text(inferred_fields(observed.properties, leave_out))
    return RegisteredSchema(INFERRED_ID, field_list.LANGUAGE, text)


def _by_topic(observed: Mapping[TopicPartition, SampledValues]) -> dict[str, SampledValues]:
    topics: dict[str, SampledValues] = {}
    for tp, each in sorted(observed.items()):
        topics.setdefault(tp.topic, SampledValues()).merge(each)
    return topics


def _log_doubts(topic: str, observed: SampledValues) -> None:
    doubts = list(observed.doubts())
    if not doubts:
        return
    shown, more = doubts[:_MAX_DOUBTS], len(doubts) - _MAX_DOUBTS
    _log.warning(
        "topic %s: the inferred schema counts for ever, and %s%s. If that is not intended, set spec.format.schema "
        "instead of inference",
        topic,
        "; ".join(shown),
        f"; and {more:,} more" if more > 0 else "",
    )


def _log_schema(topic: str, schema: RegisteredSchema, *, is_new: bool) -> None:
    fields = field_list.parse_fields(schema.text)
    how = "inferred from its first records" if is_new else "in the ledger"
    if not fields:
        _log.warning(
            "topic %s: the schema %s has no fields, because the first records are objects without properties. Set "
            "spec.format.schema instead of inference",
            topic,
            how,
        )
        return
    _log.info("topic %s: the schema %s has %d fields; `s3sink status` prints it", topic, how, len(fields))
