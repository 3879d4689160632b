"""Checks that a connector of a running worker is the one in whose place a sink starts, before it is stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sink_job.api.errors import InvalidConnector
from sink_job.api.field_errors import in_a_line
from sink_job.api.spec import Sink
from sink_job.migrate.consumer import OVERRIDE
from sink_job.migrate.inputs.worker_rest import TIMEOUT_S, WorkerRest, connector_url, stop_command
from sink_job.migrate.values import parse_list

_MAX_TOPICS: Final = 5
"""Maximum number of topics in a message."""


def check_connector(url: str, sink: Sink, timeout_s: float = TIMEOUT_S) -> None:
    """Reads the connector of a URL `…/connectors/NAME`; changes nothing.

    Raises InvalidConnector if it does not exist, or its consumer group or topics are not those of the sink, and the
    errors of `read_running`.
    """
    at = connector_url(url)
    found = WorkerRest(at, timeout_s).connector(at.connector)
    if differences := list(_differences(found.name or at.connector, found.settings, sink)):
        raise InvalidConnector(
            f"the connector {in_a_line(at.connector)} at {at.shown} is not the one in whose place this sink starts: "
            f"{'; '.join(differences)}. It was not stopped. Correct the URL or the manifest, or stop the right "
            f"connector and start without --stop-connector: {stop_command(at)}"
        )


def _differences(name: str, settings: Mapping[str, str], sink: Sink) -> Iterator[str]:
    group = settings.get(f"{OVERRIDE}group.id", "").strip() or f"connect-{name}"
    if group != sink.group_id:
        yield f"its consumer group is {in_a_line(group)}, and kafka.groupId is {sink.group_id}"
    kafka = sink.spec.kafka
    topics, pattern = set(parse_list(settings.get("topics", ""))), settings.get("topics.regex", "").strip()
    if (topics, pattern) != (set(kafka.topics or ()), kafka.topics_pattern or ""):
        theirs, own = _shown(topics, pattern), _shown(set(kafka.topics or ()), kafka.topics_pattern or "")
        yield f"it has {theirs}, and the sink {own}"


def _shown(topics: set[str], pattern: str) -> str:
    if pattern or not topics:
        return f"the pattern {in_a_line(pattern)}" if pattern else "no topics"
    more = f" and {len(topics) - _MAX_TOPICS:,} more" if len(topics) > _MAX_TOPICS else ""
    return f"the topics {', '.join(in_a_line(each) for each in sorted(topics)[:_MAX_TOPICS])}{more}"
