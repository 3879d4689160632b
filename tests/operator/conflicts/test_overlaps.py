"""Which sinks claim the same, and which of them yields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.conflicts import overlaps
from s3sink_operator.types import SinkResources
from sink_job.api.parser import parse_sink
from sink_job.api.sections.job_sections import KeySettings
from tests.operator.fake_cluster import document

MINE = SinkResources(
    namespace="data",
    name="young",
    creation_time="2025-11-02T00:00:00Z",
    bucket="archive",
    topics_dir="topics",
    topics=("flights",),
    group="g-young",
    sink_id="data.young",
    brokers="kafka:9092",
)
ELDER = replace(MINE, name="elder", creation_time="2025-11-01T00:00:00Z", group="g-elder", sink_id="data.elder")
APART = replace(ELDER, topics=("other",))
PATTERN = replace(ELDER, topics=None, pattern="fli.*")
OUR_PATTERN = replace(MINE, topics=None, pattern="a.*")


@pytest.mark.parametrize(
    ("mine", "other", "what"),
    [
        pytest.param(MINE, ELDER, "the topic flights", id="the same topic in the same place"),
        pytest.param(MINE, replace(APART, group="g-young"), "the consumer group g-young", id="the same group"),
        pytest.param(MINE, replace(APART, sink_id="data.young"), "the ledger data.young", id="the same ledger"),
        pytest.param(MINE, PATTERN, "the topic flights", id="a topic that the other's pattern matches"),
        pytest.param(
            OUR_PATTERN, replace(ELDER, topics=("ab",)), "the topic ab", id="a topic that our pattern matches"
        ),
        pytest.param(OUR_PATTERN, replace(PATTERN, pattern="a.*"), "the topics a.*", id="the same pattern"),
        pytest.param(
            OUR_PATTERN,
            replace(PATTERN, pattern=".*b", observed_topics=("ab",)),
            "the topic ab",
            id="a topic found by both",
        ),
        pytest.param(
            replace(MINE, topics_dir="mine", dead_letters="topics/rejected"),
            APART,
            "the directory topics/rejected",
            id="our dead letters inside the objects of the other one",
        ),
        pytest.param(
            replace(MINE, topics_dir="mine/objects"),
            replace(APART, dead_letters="mine"),
            "the directory mine",
            id="dead letters of the other one above our objects",
        ),
        pytest.param(
            replace(MINE, topics_dir="mine", dead_letters="rejected"),
            replace(ELDER, dead_letters="rejected"),
            "the directory rejected",
            id="the same directory of dead letters for one topic",
        ),
    ],
)
def test_of_two_new_sinks_the_younger_one_loses_a_conflict_about(
    mine: SinkResources, other: SinkResources, what: str
) -> None:
    found = overlaps.find_conflict(mine, [other])
    assert found is not None
    assert found.certain
    assert found.resource.startswith(what)
    assert "data/elder" in overlaps.conflict_message(mine, found)
    assert overlaps.find_conflict(other, [mine]) is None


def holding(sink: SinkResources, since: str = "2025-11-03T00:00:00Z") -> SinkResources:
    """The sink after the operator has found no conflict of it."""
    return replace(sink, held=sink.digest, held_since=since)


def test_a_sink_that_did_not_change_wins_against_an_older_one_that_was_edited() -> None:
    victim = holding(MINE)
    edited = replace(holding(APART), topics=("flights",))
    assert overlaps.find_conflict(victim, [edited]) is None
    found = overlaps.find_conflict(edited, [victim])
    assert found is not None
    assert found.certain
    assert "which had it first" in overlaps.conflict_message(edited, found)


@pytest.mark.parametrize(
    "edit",
    [
        {"topics": ("flights",)},
        {"topics": None, "pattern": "fl.*"},
        {"sink_id": MINE.sink_id},
        {"brokers": "kafka:9092", "group": MINE.group},
    ],
)
def test_no_edit_of_an_older_sink_ends_a_sink_that_did_not_change(edit: dict[str, object]) -> None:
    before = holding(replace(ELDER, topics=("other",), brokers="senseless:1"))
    edited: SinkResources = replace(before, **edit)  # type: ignore[arg-type]
    assert overlaps.find_conflict(holding(MINE), [edited]) is None
    assert overlaps.find_conflict(edited, [holding(MINE)]) is not None


def test_an_edit_beside_a_waiting_sink_loses_nothing_to_it() -> None:
    """The older sink lost a conflict, so it holds nothing; the other one edits something that both do not share."""
    loser, edited = ELDER, replace(holding(MINE), topics=("flights", "more"))
    assert overlaps.find_conflict(edited, [loser]) is None
    assert overlaps.find_conflict(loser, [edited]) is not None


def test_of_two_sinks_that_are_edited_at_once_the_older_one_wins() -> None:
    both = [replace(holding(each, "x"), topics=("flights", "more")) for each in (MINE, ELDER)]
    assert overlaps.find_conflict(both[0], [both[1]]) is not None
    assert overlaps.find_conflict(both[1], [both[0]]) is None


def test_of_two_sinks_that_hold_what_overlaps_later_the_first_holder_wins() -> None:
    first, second = holding(MINE, "2025-11-03T00:00:00Z"), holding(ELDER, "2025-11-04T00:00:00Z")
    assert overlaps.find_conflict(first, [second]) is None
    assert overlaps.find_conflict(second, [first]) is not None


@pytest.mark.parametrize("mine", [MINE, holding(MINE), ELDER, holding(ELDER)])
def test_a_sink_of_another_namespace_stops_nothing_and_is_named_at_both(mine: SinkResources) -> None:
    foreign = replace(mine, namespace="attacker", name="older", creation_time="2020-01-01T00:00:00Z", held="forged")
    for one, other in ((mine, foreign), (foreign, mine)):
        assert overlaps.find_conflict(one, [other]) is None
        found = overlaps.find_foreign_overlap(one, [other])
        assert found is not None
        assert other.full_name in overlaps.foreign_overlap_message(one, found)


def test_many_sinks_of_another_namespace_are_not_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(mine: SinkResources, other: SinkResources) -> None:
        compared.append(other.name)

    monkeypatch.setattr(overlaps, "find_overlap", counted)
    many = [replace(ELDER, namespace="attacker", name=f"n{number}") for number in range(10_000)]
    assert overlaps.find_foreign_overlap(MINE, many) is None
    assert overlaps.find_conflict(MINE, many) is None
    assert len(compared) == overlaps.MAX_FOREIGN


@pytest.mark.parametrize("find", [overlaps.find_conflict, overlaps.find_foreign_overlap])
def test_sinks_with_many_topics_are_not_all_matched(find: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 sinks of a tenant with 1,000 topics each took more than 10 s of one pass: the operator lost its Lease."""
    matched = []

    def matches(pattern: str, topic: str) -> bool:
        matched.append(topic)
        return False

    monkeypatch.setattr(overlaps, "matches", matches)
    topics = tuple(f"topic-{number}" for number in range(1000))
    namespace = PATTERN.namespace if find is overlaps.find_conflict else "attacker"
    rival = replace(holding(ELDER), namespace=namespace, topics=topics, group="of-the-rival", sink_id="of-the-rival")
    many = [replace(rival, name=f"n{number}") for number in range(2000)]
    mine = replace(PATTERN, creation_time="2027-01-01T00:00:00Z")
    assert find(mine, many) is None
    assert 0 < len(matched) <= overlaps.MAX_COMPARED_TOPICS + len(topics)
    last = replace(many[0], name="last", group=mine.group, brokers=mine.brokers)
    found = find(mine, [*many, last])
    assert found is not None, "a shared ledger or group is found at once"
    assert found.owner == last


def test_the_digest_of_a_sink_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = replace(MINE)
    before = sink.digest
    monkeypatch.setattr("s3sink_operator.types.json.dumps", lambda _: pytest.fail("the digest is computed again"))
    assert sink.digest == before


@given(st.permutations([MINE, holding(ELDER), replace(holding(ELDER), name="twin", held="edited"), PATTERN]))
def test_exactly_one_of_several_conflicting_sinks_runs_whatever_they_hold(sinks: list[SinkResources]) -> None:
    running = [
        mine.name
        for mine in sinks
        if overlaps.find_conflict(mine, [other for other in sinks if other is not mine]) is None
    ]
    assert running == ["elder"]


@pytest.mark.parametrize("status", [None, {}, {"claim": None}, {"claim": 7}, {"claim": {"digest": 7, "since": []}}])
def test_a_claim_that_makes_no_sense_counts_as_none(status: object) -> None:
    made = document() | {"status": status}
    found = overlaps.resources_of(parse_sink(made), made)
    assert (found.held, found.held_since) == ("", "")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(APART, id="another topic"),
        pytest.param(replace(ELDER, bucket="else"), id="another bucket"),
        pytest.param(replace(ELDER, topics_dir="else"), id="another directory"),
        pytest.param(replace(ELDER, endpoint="https://minio:9000"), id="another store"),
        pytest.param(replace(APART, group="g-young", brokers="kafka-2:9092"), id="the same group of another Kafka"),
        pytest.param(replace(PATTERN, pattern="z.*"), id="a pattern that does not match"),
    ],
)
def test_sinks_live_side_by_side_with(other: SinkResources) -> None:
    assert overlaps.find_conflict(MINE, [other]) is None


def test_patterns_without_known_topics_may_overlap_and_are_not_rejected() -> None:
    found = overlaps.find_conflict(OUR_PATTERN, [replace(PATTERN, pattern=".*b")])
    assert found is not None
    assert not found.certain
    assert "OwnershipConflict" in overlaps.conflict_message(OUR_PATTERN, found)


def test_a_pattern_that_takes_too_long_to_match_may_overlap_and_blocks_nothing() -> None:
    """Against forty letters a, Python's own engine tries this one for hours: others write patterns, and we match."""
    hard = replace(OUR_PATTERN, pattern="((a?){999}){999}b")
    found = overlaps.find_conflict(hard, [replace(ELDER, topics=("a" * 200,))])
    assert found is not None
    assert not found.certain
    assert overlaps.find_conflict(replace(hard, pattern="(a+)+b"), [replace(ELDER, topics=("a" * 200,))]) is None


def test_a_certain_conflict_is_reported_before_a_possible_one() -> None:
    near = replace(PATTERN, name="a", pattern=".*b")
    found = overlaps.find_conflict(OUR_PATTERN, [near, replace(ELDER, name="z", topics=("ab",))])
    assert found is not None
    assert found.certain


@given(st.permutations([MINE, ELDER, replace(ELDER, name="twin"), PATTERN]))
def test_exactly_one_of_several_conflicting_sinks_runs(claims: list[SinkResources]) -> None:
    going = [
        mine
        for mine in claims
        if overlaps.find_conflict(mine, [other for other in claims if other is not mine]) is None
    ]
    assert len({(claim.creation_time, claim.name) for claim in going}) == 1


def test_the_resources_of_a_sink_include_its_observed_topics() -> None:
    made = document(kafka={"bootstrapServers": "kafka:9092", "topicsPattern": "f.*"})
    made["status"] = {"progress": {"topics": [{"topic": "flights", "lag": 1}]}}
    claim = overlaps.resources_of(parse_sink(made), made)
    assert (claim.full_name, claim.pattern, claim.topics, claim.observed_topics) == (
        "data/flights",
        "f.*",
        None,
        ("flights",),
    )
    assert claim.group == "s3sink-data.flights"


@pytest.mark.parametrize(
    "endpoint", ["https://S3.example.com", "https://s3.example.com/", "https://s3.example.com:443"]
)
def test_one_endpoint_in_two_spellings_is_one_place(endpoint: str) -> None:
    mine, other = (
        document(name, s3={"bucket": "archive", "endpoint": each})
        for name, each in (("a", "https://s3.example.com"), ("b", endpoint))
    )
    found = overlaps.find_overlap(*(overlaps.resources_of(parse_sink(each), each) for each in (mine, other)))
    assert found is not None
    assert found.resource.startswith("the topic flights")


def test_the_order_of_brokers_makes_no_other_kafka() -> None:
    mine, other = (
        document(name, kafka={"bootstrapServers": brokers, "topics": [name], "groupId": "g"})
        for name, brokers in (("a", "k1:1,k2:1"), ("b", "K2:1, k1:1"))
    )
    found = overlaps.find_overlap(*(overlaps.resources_of(parse_sink(each), each) for each in (mine, other)))
    assert found is not None
    assert found.resource == "the consumer group g"


def claims() -> st.SearchStrategy[list[SinkResources]]:
    """Of sinks whose values meet often."""
    topic = st.sampled_from(["ab", "ac", "bc"])
    one = st.builds(
        replace,
        st.sampled_from([MINE, OUR_PATTERN]),
        creation_time=st.sampled_from(["2025-11-01T00:00:00Z", "2025-11-02T00:00:00Z"]),
        bucket=st.sampled_from(["archive", "else"]),
        group=st.sampled_from(["g-1", "g-2", "g-3"]),
        sink_id=st.sampled_from(["s-1", "s-2", "s-3"]),
        brokers=st.sampled_from(["kafka:9092", "kafka-2:9092"]),
        observed_topics=st.lists(topic, max_size=2),
    )
    chosen = st.builds(
        lambda claim, topics: replace(claim, topics=topics) if claim.topics else claim, one, st.tuples(topic)
    )
    patterned = st.builds(
        lambda claim, pattern: replace(claim, pattern=pattern) if claim.pattern else claim,
        chosen,
        st.sampled_from(["a.*", ".*b", "(?=a)ab", "z"]),
    )
    placed = st.builds(
        lambda claim, place: named(claim, *place) if place else claim,
        patterned,
        st.sampled_from(
            [None, ("topics/a", True), ("topics", False), ("topics", True, {"pattern": "a.*", "prefix": "a"})]
        ),
    )
    many = st.lists(placed, max_size=6)
    return many.map(lambda found: [replace(claim, name=f"sink-{number}") for number, claim in enumerate(found)])


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        pytest.param(
            replace(MINE, topics_dir="mine", dead_letters="rejected"),
            replace(APART, dead_letters="rejected"),
            id="one directory for other topics",
        ),
        pytest.param(
            replace(MINE, topics_dir="mine", dead_letters="topics2"), APART, id="a name that only begins alike"
        ),
        pytest.param(
            replace(MINE, topics_dir="mine", dead_letters="topics", bucket="other"), APART, id="another bucket"
        ),
        pytest.param(
            replace(MINE, topics_dir="mine", dead_letters="rejected"), replace(APART, topics_dir=""), id="the root"
        ),
    ],
)
def test_dead_letters_do_not_conflict_in(mine: SinkResources, other: SinkResources) -> None:
    assert overlaps.find_overlap(mine, other) is None
    assert overlaps.find_overlap(other, mine) is None


# -- s3.prefixes and topicInPath ---------------------------------------------------------------------------------------


def named(sink: SinkResources, topics_dir: str, in_path: bool, *prefixes: dict[str, str]) -> SinkResources:
    s3 = {"topicsDir": topics_dir, "topicInPath": in_path, "prefixes": prefixes}
    return replace(sink, topics_dir=topics_dir, key_names=KeySettings.model_validate(s3))


FLIGHTS = {"topic": "flights", "prefix": "a"}
BY_LOOKAHEAD = {"pattern": "(?=f).*", "prefix": "a"}


@pytest.mark.parametrize(
    ("mine", "other", "shown"),
    [
        (named(MINE, "x", True, FLIGHTS), replace(ELDER, topics_dir="x/a"), "flights below x/a/flights"),
        (named(MINE, "x", False), replace(ELDER, topics_dir="x/y"), "flights below x/y/flights"),
        (named(MINE, "", False), replace(ELDER, topics_dir="x"), "flights below x/flights"),
        (named(MINE, "x", False, FLIGHTS), named(ELDER, "x/a", False), "flights below x/a"),
        (named(MINE, "x", True, FLIGHTS), named(PATTERN, "x/a", False), "flights below x/a/flights"),
        (named(MINE, "x", True, BY_LOOKAHEAD), replace(ELDER, topics_dir="x/a"), "flights below x/a/flights"),
        (named(MINE, "x", True, FLIGHTS), replace(ELDER, topics_dir="x/b"), None),
        (named(MINE, "x", False, FLIGHTS), replace(APART, topics_dir="x/a"), None),
        (named(MINE, "x", False), replace(ELDER, topics_dir="xy"), None),
        (replace(MINE, topics_dir="x"), replace(ELDER, topics_dir="x/flights"), None),
        (named(MINE, "x", False), replace(ELDER, topics_dir="x/y", bucket="another"), None),
    ],
)
def test_two_sinks_cannot_share_keys_of_a_topic_below_two_directories(
    mine: SinkResources, other: SinkResources, shown: str | None
) -> None:
    found = overlaps.find_overlap(mine, other)
    assert (found and found.resource) == (shown and f"the topic {shown} in bucket archive")


def test_an_edit_of_prefixes_is_one_of_what_a_sink_holds() -> None:
    assert named(MINE, "topics", True, FLIGHTS).digest != MINE.digest


def test_the_names_of_a_manifest_are_compared_if_they_are_not_those_of_the_connector() -> None:
    plain, changed = document(), document()
    changed["spec"]["s3"]["topicInPath"] = False
    assert overlaps.resources_of(parse_sink(plain), plain).key_names is None
    names = overlaps.resources_of(parse_sink(changed), changed).key_names
    assert names is not None
    assert not names.topic_in_path
