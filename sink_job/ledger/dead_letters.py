"""Dead-letter objects whose records have to be in a Kafka topic before their acknowledgement."""

from __future__ import annotations

from functools import lru_cache

from sink_job.api.spec import ObjectSettings
from sink_job.ledger.state import ClosedObject, LedgerState
from sink_job.records.batch import DEAD_LETTERS


def objects_for_topics(state: LedgerState) -> dict[str, list[ClosedObject]]:
    """The closed dead-letter objects that are not acknowledged, by the topic for their records. In the order in which
    the ledger has listed them."""
    found: dict[str, list[ClosedObject]] = {}
    for o in sorted(state.pending.values(), key=lambda o: (o.record, o.topic_partition, o.first)):
        topic = _topic(state.settings[o.settings]) if o.path == DEAD_LETTERS else None
        if topic is not None:
            found.setdefault(topic, []).append(o)
    return found


@lru_cache(maxsize=16)
def _topic(settings: str) -> str | None:
    """The topic for dead letters in these settings of a claim."""
    dead_letters = ObjectSettings.model_validate_json(settings).dead_letters
    return None if dead_letters is None else dead_letters.topic
