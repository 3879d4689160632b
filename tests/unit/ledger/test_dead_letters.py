"""The closed objects that wait for a dead-letter topic."""

from __future__ import annotations

from msgspec.structs import replace

from sink_job.api.enums import OnNullValue
from sink_job.api.sections.job_sections import DeadLetterSettings
from sink_job.api.spec import ObjectSettings
from sink_job.ledger.dead_letters import objects_for_topics
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetChecksum
from sink_job.records.batch import DEAD_LETTERS


def closed(first: int, *, record: int, settings: int = 1, path: str = DEAD_LETTERS) -> ClosedObject:
    return ClosedObject(
        f"{path}/{first}", "log", 0, path, first, first, 1, 0, "u", (), (), OffsetChecksum(), settings, record=record
    )


def settings(topic: str | None) -> str:
    dead_letters = DeadLetterSettings(prefix="rejected", on_null_value=OnNullValue.FAIL, topic=topic)
    return ObjectSettings(dead_letters=dead_letters).model_dump_json()


def state(*objects: ClosedObject) -> LedgerState:
    texts = {1: settings("old"), 2: settings("new"), 3: settings(None)}
    return replace(LedgerState(), pending={o.key: o for o in objects}, settings=texts)


def test_objects_are_by_the_topic_of_their_settings_in_the_order_of_their_records() -> None:
    late, early, new = closed(1, record=9), closed(5, record=4), closed(7, record=9, settings=2)
    assert objects_for_topics(state(late, early, new)) == {"old": [early, late], "new": [new]}


def test_objects_of_accepted_records_and_of_sinks_without_a_topic_do_not_wait() -> None:
    assert objects_for_topics(state(closed(1, record=4, path="p"), closed(2, record=4, settings=3))) == {}
