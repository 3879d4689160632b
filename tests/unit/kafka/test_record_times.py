"""Timestamps of records: what is asked of the consumer in the JVM, and what its answers mean."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sink_job.api.errors import AccessDenied, SinkError, TransientError
from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.kafka import record_times
from sink_job.kafka.properties import KafkaProperties
from sink_job.kafka.record_times import RecordTimes

FLIGHTS = [TopicPartition("flights", n) for n in range(3)]


class Reader:
    """The consumer in the JVM; `answer` is that of the next request."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.asked: list[tuple[str, int]] = []
        self.answer = "+"
        self.calls: list[str] = []

    def open(self, settings: dict[str, str]) -> None:
        self.settings = settings

    def read(self, positions: str, timeout_ms: int) -> str:
        self.asked.append((positions, timeout_ms))
        return self.answer

    def stop(self) -> None:
        self.calls.append("stop")

    def close(self) -> None:
        self.calls.append("close")


class JavaMap(dict[str, str]):
    def put(self, name: str, value: str) -> None:
        self[name] = value


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    found = Reader()
    monkeypatch.setattr(record_times, "new_instance", lambda *_: found)
    return found


def times(**properties: str) -> RecordTimes:
    spec = KafkaSpec(bootstrap_servers="kafka:9092", topics=["flights"], properties=properties)
    gateway: Any = SimpleNamespace(jvm=SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(HashMap=JavaMap))))
    return RecordTimes(gateway, KafkaProperties.of(spec, {}))


def test_a_request_has_all_offsets_and_an_answer_the_times_that_exist(reader: Reader) -> None:
    reader.answer = "+flights 0 1700000000000 1 0 2 -1"
    found = times().read({tp: 100 + tp.partition for tp in FLIGHTS}, timeout_ms=500)
    assert found == {FLIGHTS[0]: 1_700_000_000_000, FLIGHTS[1]: 0}
    [(positions, timeout_ms)] = reader.asked
    assert positions == "flights 0 100 1 101 2 102"
    assert timeout_ms == 500


def test_an_answer_without_times_is_empty(reader: Reader) -> None:
    assert times().read({FLIGHTS[0]: 1}, timeout_ms=500) == {}


def test_without_offsets_nothing_is_asked(reader: Reader) -> None:
    assert times().read({}, timeout_ms=500) == {}
    assert reader.asked == []


@pytest.mark.parametrize(
    ("exception", "error"),
    [
        ("org.apache.kafka.common.errors.TopicAuthorizationException", AccessDenied),
        ("org.apache.kafka.common.errors.TimeoutException", TransientError),
    ],
)
def test_an_exception_in_the_jvm_is_the_error_of_the_admin_client_without_secrets(
    reader: Reader, exception: str, error: type[SinkError]
) -> None:
    reader.answer = f"-{exception} with the password hunter2"
    with pytest.raises(error, match="kafka:9092") as raised:
        times(**{"ssl.key.password": "hunter2"}).read({FLIGHTS[0]: 1}, timeout_ms=500)
    assert "hunter2" not in str(raised.value)


def test_the_consumer_belongs_to_no_group_and_reads_one_record_at_a_time(reader: Reader) -> None:
    times(**{"client.rack": "a", "fetch.max.wait.ms": "1"})
    assert (reader.settings["bootstrap.servers"], reader.settings["client.rack"]) == ("kafka:9092", "a")
    assert (reader.settings["max.poll.records"], reader.settings["enable.auto.commit"]) == ("1", "false")
    assert reader.settings["auto.offset.reset"] == "none"
    assert "group.id" not in reader.settings


def test_the_consumer_is_stopped_and_closed_in_the_jvm(reader: Reader) -> None:
    found = times()
    found.stop()
    found.close()
    assert reader.calls == ["stop", "close"]
