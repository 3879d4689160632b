"""The cluster id of a broker."""

from __future__ import annotations

import uuid

import pytest

from devtools import kafka


def test_a_cluster_id_does_not_begin_with_a_hyphen(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([uuid.UUID(bytes=b"\xf8" * 16), uuid.UUID(bytes=b"\x01" * 16)])
    monkeypatch.setattr("devtools.kafka.uuid.uuid4", lambda: next(drawn))
    assert kafka._kafka_uuid() == "AQEBAQEBAQEBAQEBAQEBAQ"
