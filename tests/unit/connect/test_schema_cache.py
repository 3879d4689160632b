"""The cache of compiled schemas."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest

from sink_job.connect import schema_cache
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema_cache import cached_by_size
from sink_job.protobuf import converter as protobuf_converter
from tests.unit.protobuf.protobuf_data import convert, converter, proto3
from tests.unit.protobuf.protobuf_data import in_wire_format as protobuf_in_wire_format


def _recorded(calls: list[str]) -> Callable[[str], str]:
    def compile_schema(key: str) -> str:
        calls.append(key)
        return key

    return compile_schema


def test_the_results_that_were_used_last_are_kept_up_to_a_size() -> None:
    calls: list[str] = []
    find = cached_by_size(_recorded(calls), lambda *_: 40, max_size=100)
    for key in "aababcab":
        find(key)
    assert calls == ["a", "b", "c", "a", "b"]


def test_a_result_above_the_maximum_size_is_returned_and_not_kept() -> None:
    calls: list[str] = []
    find = cached_by_size(_recorded(calls), lambda *_: 101, max_size=100)
    assert [find("a"), find("a")] == ["a", "a"]
    assert calls == ["a", "a"]


def test_the_compiled_messages_of_protobuf_count_with_their_descriptors() -> None:
    found = protobuf_converter.compiled(proto3("message M { int64 a = 1; }"))
    larger = protobuf_converter.compiled(proto3(" ".join(f"message M{n} {{ int64 a = 1; }}" for n in range(1000))))
    assert 4_096 < found.size < 10_000
    assert larger.size > 500_000


def test_the_decoders_of_the_messages_of_a_schema_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_cache, "MAX_CACHE_SIZE", 10_000)
    decoders = Mock(wraps=protobuf_converter.ProtobufDecoder)
    monkeypatch.setattr(protobuf_converter, "ProtobufDecoder", decoders)
    schema = proto3("message A { int64 a = 1; } message B { int64 b = 1; } message C { int64 c = 1; }")
    found = converter(schema)
    for index in (0, 1, 1, 2, 0):
        indexes = b"\2" + bytes([2 * index])
        assert convert(found, [protobuf_in_wire_format(b"\x08\1", indexes=indexes)]).rejected == []
    assert decoders.call_count == 4


def test_an_exception_is_not_kept() -> None:
    def fail(key: str) -> None:
        calls.append(key)
        raise InvalidSchema(key)

    calls: list[str] = []
    find = cached_by_size(fail, lambda *_: 1)
    for _ in range(2):
        with pytest.raises(InvalidSchema):
            find("a")
    assert calls == ["a", "a"]
