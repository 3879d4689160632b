"""The dead-letter topic of a connector. A sink does not read its own dead letters; a connector may."""

from __future__ import annotations

import re
from typing import Final

from sink_job.api.field_types import check_topic, check_topics_pattern
from sink_job.migrate.draft import Draft
from sink_job.migrate.values import parse_boolean

_TOPIC: Final = "errors.deadletterqueue.topic.name"
_CONTEXT_HEADERS: Final = "errors.deadletterqueue.context.headers.enable"
_REPORTED_NULLS: Final = "report.null.values.to.dlq"
_FLAGS: Final = re.compile(r"\(\?[a-z]+\)")


def convert_dead_letters(draft: Draft, tolerance: str | None, nulls: str | None) -> None:
    """Sets `errors.deadLetters`. `tolerance` and `nulls`: `errors.tolerance` and `errors.onNullValue`."""
    if not draft.text(_TOPIC):
        return
    if tolerance != "All":
        draft.left_out(_TOPIC, "has no effect without errors.tolerance=all")
        return
    topic = draft.parsed(_TOPIC, _topic)
    if topic is None:
        return
    _exclude(draft, topic)
    draft.put("errors.deadLetters.topic", topic, _TOPIC)
    if not draft.parsed(_CONTEXT_HEADERS, parse_boolean):
        draft.put("errors.deadLetters.headers", False, _CONTEXT_HEADERS)
    action = f"create it if it does not exist: kafka-topics.sh --create --topic {topic}"
    draft.to_do("The dead-letter topic", action)
    if nulls == "Ignore" and draft.parsed(_REPORTED_NULLS, parse_boolean) is not False:
        given = "" if _REPORTED_NULLS in draft.settings else ": the connector's default"
        draft.put("errors.deadLetters.nullValues", True, f"{_REPORTED_NULLS}{given}")


def _topic(text: str) -> str:
    check_topic(text)
    return text


def _exclude(draft: Draft, topic: str) -> None:
    """Makes sure that the sink does not read `topic`."""
    topics, pattern = draft.fields.get("kafka.topics"), draft.fields.get("kafka.topicsPattern")
    effect = "is one of the connector's own topics: the sink does not read its own dead letters; {}"
    action = "copy the dead letters with another S3Sink"
    if topics is not None and topic in topics.value:
        rest = [each for each in topics.value if each != topic]
        if rest:
            draft.different(_TOPIC, effect.format("it is left out of kafka.topics"), action)
            draft.put("kafka.topics", rest, f"{topics.comment}, without the dead-letter topic")
        else:
            draft.impossible(_TOPIC, effect.format("the connector has no other topic"), "use another topic")
    elif pattern is not None and re.fullmatch(pattern.value, topic):
        flags = _FLAGS.match(pattern.value)
        start = flags[0] if flags else ""
        without = f"{start}(?!{topic.replace('.', '[.]')}$)(?:{pattern.value.removeprefix(start)})"
        try:
            check_topics_pattern(without)
        except ValueError:
            draft.impossible(_TOPIC, effect.format("the expression without it is too long"), "use another topic")
            return
        draft.different(_TOPIC, effect.format("the pattern excludes it"), action)
        draft.put("kafka.topicsPattern", without, f"{pattern.comment}, without the dead-letter topic")
