"""The producer of dead letters, and drivers that use it, with a real broker (`errors.deadLetters.topic`)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Consumer
from py4j.java_gateway import JavaGateway

from devtools.kafka import KafkaBroker, kafka_broker
from devtools.s3 import S3Server
from devtools.simulation.dead_letter_topic import SimulatedTopics
from devtools.topics import Record, Topics
from sink_job.api.errors import AccessDenied, ConfigurationError, LedgerFenced, TopicNotFound, TransientError
from sink_job.coordinator.context import StopCondition
from sink_job.engine.dead_letter_topic import CommittedNumber, DeadLetter, DeadLetterTopic, ProducerFenced
from sink_job.kafka.admin import JavaKafkaAdmin
from sink_job.kafka.dead_letter_topic import JavaDeadLetterTopic
from sink_job.kafka.jvm import plain_jvm
from sink_job.kafka.properties import KafkaProperties
from sink_job.spark.jars import client_jars
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

ALL = StopCondition(until_caught_up=True, publish_open=True)
USERS = {"admin": "admin-word", "guest": "guest-word"}
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class HalfRejected(SyntheticLog):
    """A log of which every second value is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return super().value(partition, offset)[offset % 2 :]


LOG = HalfRejected(records=8)
REJECTED = [f"default.log/log/0/{offset}" for offset in (1, 3, 5, 7)]


@pytest.fixture(scope="module")
def jvm() -> Iterator[JavaGateway]:
    gateway = plain_jvm(client_jars())
    yield gateway
    gateway.shutdown()


Producers = Callable[..., JavaDeadLetterTopic]


@pytest.fixture(scope="module")
def producers(jvm: JavaGateway, kafka: KafkaBroker) -> Iterator[Producers]:
    properties = KafkaProperties({"bootstrap.servers": kafka.bootstrap})
    made: list[JavaDeadLetterTopic] = []
    with JavaKafkaAdmin(jvm, properties) as admin:

        def new(name: str, transactions: bool = True) -> JavaDeadLetterTopic:
            made.append(JavaDeadLetterTopic(jvm, properties, admin, name, transactions=transactions))
            return made[-1]

        yield new
        for each in made:
            each.close()


@pytest.fixture
def name() -> str:
    return f"s3sink-{uuid.uuid4().hex[:8]}"


def letter(number: int, value: bytes | None = b"v") -> DeadLetter:
    return DeadLetter(1_700_000_000_000 + number, b"k", value, [("s3sink.id", b"sink/log/0/%d" % number), ("h", None)])


def ids(topics: Topics, topic: str) -> list[str]:
    """The dead letters that a consumer with read_committed sees."""
    found = [dict(message.headers() or [])["s3sink.id"] for message in topics.read(topic)]
    return [each.decode() for each in found if isinstance(each, bytes)]


def test_records_and_the_number_are_committed_in_one_transaction(
    producers: Producers, topics: Topics, topic: str, name: str
) -> None:
    topics.create(topic)
    producer = producers(name)
    producer.start()
    assert producer.committed(topic) is None
    producer.produce(topic, [[letter(1), letter(2, None)], [letter(3)]], CommittedNumber(7, "of a ledger"))
    assert producer.committed(topic) == CommittedNumber(7, "of a ledger")
    first, second, third = topics.read(topic)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"k", b"v", 1_700_000_000_001)
    assert first.headers() == [("s3sink.id", b"sink/log/0/1"), ("h", None)]
    assert (second.value(), third.value()) == (None, b"v")


def test_a_failure_between_records_commits_nothing(producers: Producers, topics: Topics, topic: str, name: str) -> None:
    def batches() -> Iterator[Sequence[DeadLetter]]:
        yield [letter(1)]
        raise TransientError("the store is down")

    topics.create(topic)
    producer = producers(name)
    producer.start()
    with pytest.raises(TransientError, match="the store is down"):
        producer.produce(topic, batches(), CommittedNumber(7, ""))
    assert (ids(topics, topic), producer.committed(topic)) == ([], None)


def test_a_later_producer_fences_an_earlier_one_and_ends_its_transaction(
    producers: Producers, topics: Topics, topic: str, name: str
) -> None:
    topics.create(topic)
    first, second = producers(name), producers(name)
    first.start()

    def interrupted() -> Iterator[Sequence[DeadLetter]]:
        yield [letter(1)]
        second.start()
        second.produce(topic, [[letter(1), letter(2)]], CommittedNumber(9, ""))
        yield [letter(2)]

    with pytest.raises(ProducerFenced):
        first.produce(topic, interrupted(), CommittedNumber(8, ""))
    assert ids(topics, topic) == ["sink/log/0/1", "sink/log/0/2"]
    assert second.committed(topic) == CommittedNumber(9, "")


def test_a_search_finds_committed_ids_of_the_sink_from_a_time_on(
    producers: Producers, topics: Topics, topic: str, name: str
) -> None:
    topics.create(topic, partitions=3)
    producer = producers(name)
    producer.start()
    producer.produce(topic, [[letter(number) for number in range(10)]], CommittedNumber(1, ""))
    assert producer.search(topic, "sink/", 1_700_000_000_004) >= {f"sink/log/0/{number}" for number in range(4, 10)}
    assert producer.search(topic, "other/", 0) == set()
    assert producer.search(topic, "sink/", 1_700_000_100_000) == set()


def test_without_transactions_the_number_follows_the_records(
    producers: Producers, topics: Topics, topic: str, name: str
) -> None:
    topics.create(topic)
    producer = producers(name, False)
    producer.start()
    producer.produce(topic, [[letter(1)]], CommittedNumber(3, "metadata, with a comma"))
    assert (ids(topics, topic), producer.committed(topic)) == (
        ["sink/log/0/1"],
        CommittedNumber(3, "metadata, with a comma"),
    )


def test_a_topic_that_does_not_exist_is_named_with_its_field(producers: Producers, name: str) -> None:
    with pytest.raises(
        TopicNotFound, match=r"spec\.errors\.deadLetters\.topic: .* topic absent does not exist\. Create"
    ):
        producers(name).check("absent")


def test_the_limit_of_a_topic_is_that_of_its_configuration(
    producers: Producers, topics: Topics, topic: str, name: str
) -> None:
    topics.create(topic, settings={"max.message.bytes": "2000"})
    assert producers(name).check(topic) == 2000


def test_a_topic_that_is_compacted_is_rejected(producers: Producers, topics: Topics, topic: str, name: str) -> None:
    topics.create(topic, settings={"cleanup.policy": "compact"})
    with pytest.raises(ConfigurationError, match=r"is compacted \(cleanup\.policy is compact\).* Set cleanup\.policy"):
        producers(name).check(topic)


def test_a_topic_that_rejects_the_time_of_dead_letters_is_named_with_its_setting(
    producers: Producers, topics: Topics, topic: str, name: str
) -> None:
    topics.create(topic, settings={"message.timestamp.before.max.ms": "1"})
    producer = producers(name)
    producer.start()
    with pytest.raises(ConfigurationError, match=r"and message\.timestamp\.before\.max\.ms to more than the sink"):
        producer.produce(topic, [[letter(1)]], CommittedNumber(1, ""))


def test_the_number_is_read_after_a_transaction_that_commits_another_one(
    producers: Producers, kafka: KafkaBroker, topics: Topics, topic: str, name: str
) -> None:
    topics.create(topic)
    producer = producers(name)
    producer.start()
    producer.produce(topic, [[letter(1)]], CommittedNumber(1, "a"))
    transaction = topics.open_transaction(topic, [Record(value=b"v")])
    group = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": name})
    offsets = [confluent_kafka.TopicPartition(topic, 0, 2)]
    transaction.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 30)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(producers(name).committed, topic)
        with pytest.raises(TimeoutError):
            waiting.result(1)
        transaction.commit_transaction(30)
        found = waiting.result(30)
    group.close()
    assert found == CommittedNumber(2, "")


# -- drivers ---------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of a process. Its producer stays open, as that of a suspended one."""


class Interrupted:
    """A producer whose driver is killed before or after its n-th call."""

    def __init__(self, producer: DeadLetterTopic, kill_at: int) -> None:
        self.producer = producer
        self.name = ""
        self.calls = 0
        self._kill_at = kill_at

    def _step(self) -> None:
        self.calls += 1
        if self.calls == self._kill_at:
            raise Killed

    def produce(self, topic: str, batches: Iterable[Sequence[DeadLetter]], commit: CommittedNumber) -> None:
        def interrupted() -> Iterator[Sequence[DeadLetter]]:
            for batch in batches:
                yield batch
                self._step()

        self._step()
        self.producer.produce(topic, interrupted(), commit)
        self._step()

    def start(self) -> None:
        self._step()
        self.producer.start()
        self._step()

    def check(self, topic: str) -> int:
        return self.producer.check(topic)

    def committed(self, topic: str) -> CommittedNumber | None:
        return self.producer.committed(topic)

    def search(self, topic: str, prefix: str, since: int) -> set[str]:
        return self.producer.search(topic, prefix, since)

    def close(self) -> None:
        self.producer.close()


def given(topic: str, **more: Any) -> dict[str, Any]:
    errors = {"tolerance": "All", "deadLetters": {"topic": topic, **more}}
    return {"flush_size": 3, "max_records": 4, "errors": errors}


def new_sink(s3: S3Server, folder: Path) -> SinkFixture:
    folder.mkdir()
    return SinkFixture.new(s3.endpoint, folder)


def test_a_kill_at_each_effect_on_the_topic_leaves_each_dead_letter_there_once(
    producers: Producers, topics: Topics, topic: str, s3: S3Server, tmp_path: Path
) -> None:
    kills = 0
    while True:
        sink, place, made = new_sink(s3, tmp_path / str(kills)), f"{topic}-{kills}", list[Interrupted]()
        topics.create(place)

        def interrupted(name: str, transactions: bool, made: list[Interrupted] = made, at: int = kills) -> Interrupted:
            made.append(Interrupted(producers(name, transactions), at + 1))
            return made[-1]

        try:
            sink.run(LOG, ALL, context={"dead_letter_topic": interrupted}, **given(place))
        except Killed:
            kills += 1
        else:
            break
        sink.run(LOG, ALL, context={"dead_letter_topic": producers}, **given(place))
        assert ids(topics, place) == REJECTED, f"killed at call {kills}"
    assert kills >= 8
    assert ids(topics, place) == REJECTED


def test_retention_between_the_record_and_the_transaction_loses_nothing(
    producers: Producers, topics: Topics, topic: str, sink_fixture: SinkFixture
) -> None:
    topics.create(topic)

    def killed(name: str, transactions: bool) -> Interrupted:
        return Interrupted(producers(name, transactions), 5)  # start and the first number have two calls each

    with pytest.raises(Killed):
        sink_fixture.run(LOG, ALL, context={"dead_letter_topic": killed}, **given(topic))
    assert ids(topics, topic) == []
    assert sink_fixture.group() == {"log-0": 0}
    sink_fixture.run(replace(LOG, starts_at=4), ALL, context={"dead_letter_topic": producers}, **given(topic))
    assert ids(topics, topic) == REJECTED
    assert sink_fixture.group() == {"log-0": 8}


def test_the_transaction_of_a_suspended_driver_is_fenced(
    producers: Producers, topics: Topics, topic: str, sink_fixture: SinkFixture
) -> None:
    topics.create(topic)

    class Suspended(Interrupted):
        """It is suspended after it has sent its first records; another driver copies everything meanwhile."""

        def _step(self) -> None:
            self.calls += 1
            if self.calls == 6:
                sink_fixture.run(LOG, ALL, context={"dead_letter_topic": producers}, **given(topic))

    with pytest.raises(LedgerFenced):
        sink_fixture.run(
            LOG, ALL, context={"dead_letter_topic": lambda *named: Suspended(producers(*named), 0)}, **given(topic)
        )
    assert ids(topics, topic) == REJECTED


def test_a_driver_whose_producer_was_fenced_by_a_suspended_one_continues(
    producers: Producers, topics: Topics, topic: str, sink_fixture: SinkFixture
) -> None:
    topics.create(topic)

    class Rival(Interrupted):
        """A producer with its name is started before its third transaction."""

        def _step(self) -> None:
            self.calls += 1
            if self.calls == 5:
                producers(self.name, True).start()

    def rival(name: str, transactions: bool) -> Rival:
        found = Rival(producers(name, transactions), 0)
        found.name = name
        return found

    sink_fixture.run(LOG, ALL, context={"dead_letter_topic": rival}, **given(topic))
    assert ids(topics, topic) == REJECTED


def test_a_record_that_is_too_large_for_the_topic_has_no_value_there(
    producers: Producers, topics: Topics, topic: str, sink_fixture: SinkFixture
) -> None:
    topics.create(topic, settings={"max.message.bytes": "3000"})
    log = HalfRejected(records=4, value_bytes=3000)
    sink_fixture.run(log, ALL, context={"dead_letter_topic": producers}, **given(topic))
    first, _ = topics.read(topic)
    headers = dict(first.headers() or [])
    assert (first.value(), headers["s3sink.value.omitted"]) == (None, str(len(log.value(0, 1))).encode())
    assert headers["__connect.errors.offset"] == b"1"


# -- permissions -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """A broker without transactions, where `guest` can log in but has no permissions."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "transaction.state.log.replication.factor": "3",
    }
    with kafka_broker(users=USERS, settings=settings) as broker:
        yield broker


@pytest.fixture
def logged_in(jvm: JavaGateway, guarded: KafkaBroker) -> Callable[[str], JavaDeadLetterTopic]:
    def new(user: str) -> JavaDeadLetterTopic:
        properties = KafkaProperties(
            {
                "bootstrap.servers": guarded.sasl_bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{LOGIN_MODULE} required username="{user}" password="{USERS[user]}";',
            }
        )
        admin = JavaKafkaAdmin(jvm, properties)
        return JavaDeadLetterTopic(jvm, properties, admin, "s3sink-x", transactions=True, timeout_ms=6_000)

    return new


def test_missing_permissions_and_transactions_are_named_with_their_fields(
    guarded: KafkaBroker, logged_in: Callable[[str], JavaDeadLetterTopic]
) -> None:
    topics = Topics(guarded.bootstrap)
    topics.create("dlq")
    topics.allow("guest", "dlq")
    with pytest.raises(
        AccessDenied, match=r"spec\.errors\.deadLetters\.topic: .*topic dlq may not be written to\. Allow"
    ):
        logged_in("guest").check("dlq")
    with pytest.raises(AccessDenied, match=r"spec\.errors\.deadLetters\.delivery: .* or set delivery: AtLeastOnce"):
        logged_in("guest").start()
    assert logged_in("admin").check("dlq") > 0
    with pytest.raises(
        TransientError, match=r"has no transactions, set spec\.errors\.deadLetters\.delivery: AtLeastOnce"
    ):
        logged_in("admin").start()


def test_a_new_generation_produces_its_rejected_records_again(sink_fixture: SinkFixture) -> None:
    cluster = SimulatedTopics({"dlq"})
    named = given("dlq")
    sink_fixture.run(LOG, ALL, context={"dead_letter_topic": cluster.producer}, **named)
    sink_fixture.reset(LOG, "Earliest", on_existing="NewPrefix", **named)
    sink_fixture.run(LOG, ALL, context={"dead_letter_topic": cluster.producer}, **named)
    assert [each.id for each in cluster.records["dlq"]] == 2 * REJECTED
    assert not [each.key for each in sink_fixture.s3.list("") if "/dead-letters/" in each.key]
    results = sink_fixture.verify(LOG, **named)
    assert [(each.generation, each.dead_letters, each.findings) for each in results] == [(2, 4, ()), (1, 4, ())]
    assert [each.dead_letter_objects for each in results] == [0, 0]
