"""Access of commands to Kafka: without Spark unless records are read, and the progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sink_job.cli.kafka_access import kafka_access, shown_progress
from sink_job.driver import standalone_admin


def test_queries_need_no_engine_and_their_jvm_ends_with_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    @contextmanager
    def admin(properties: object) -> Iterator[str]:
        yield "the admin client"
        events.append("ended")

    monkeypatch.setattr(standalone_admin, "admin", admin)
    nothing: Any = None
    client: Any
    with kafka_access(nothing, nothing, "repair", reads=False) as (client, engine):
        assert (client, engine) == ("the admin client", None)
        assert events == []
    assert events == ["ended"]


def test_steps_are_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress() as report:
        report("listed 100 objects")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with shown_progress() as report:
        report("listed 100 objects")
    assert "listed 100 objects" in capsys.readouterr().err
