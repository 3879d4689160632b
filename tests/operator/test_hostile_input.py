"""What a tenant can make the operator decide and write: every string and number of a report, of a pod's status and of
an annotation is hostile."""

from __future__ import annotations

import copy
import json
import unicodedata
from typing import Any

import jsonschema
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_operator import names
from s3sink_operator.crd import STATUS
from s3sink_operator.observe.limited_report import LimitedReport
from s3sink_operator.types import Decision, Json
from sink_job.api.report import RunState
from tests.operator.fake_cluster import START, Cluster, running
from tests.operator.test_properties import closed

STATUS_SCHEMA = jsonschema.Draft202012Validator(closed(STATUS))
MAX_STATUS_BYTES = 300_000
"""A fifth of what etcd takes."""
HOSTILE = [
    "",
    "a",
    "\x00",
    "\x1b[2J\x1b]0;x\x07",
    "line\nline\r\n",
    "\u202egnp.exe\u2028",
    "x" * 5_000,
    "\U0001f600",
    "{{x}}",
    "%s%n",
]
TEXT = st.sampled_from(HOSTILE)
INTEGER = st.sampled_from([0, 1, 40, 2**31 - 1, 2**53, 2**63 - 1])
SIGNED = st.sampled_from([-(2**63) + 1, -1, 0, 1, 2**63 - 1])
MOMENT = st.sampled_from([0, START, 253_402_300_799_999])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


TOPIC = st.sampled_from(["flights", "a" * 249, "-", "..."])


PARTITION = st.fixed_dictionaries(
    {"topic": TOPIC, "partition": st.sampled_from([0, 1, 4_999, 2**31 - 1]), "committed": INTEGER, "next": INTEGER},
    optional={"end": INTEGER, "lag": INTEGER, "lagMs": SIGNED, "openObjects": INTEGER},
)
SUM = st.fixed_dictionaries({"topic": TOPIC, "partitions": INTEGER}, optional={"lag": INTEGER, "lagMs": SIGNED})
HANGING = st.fixed_dictionaries(
    {"topic": TOPIC, "partition": st.sampled_from([0, 2**31 - 1]), "offset": INTEGER, "end": INTEGER, "since": MOMENT}
)
FAILURE = st.fixed_dictionaries(
    {
        "reason": TEXT | st.sampled_from(["OwnershipConflict", "DataLoss", "TopicRecreated"]),
        "message": TEXT,
        "exitCode": SIGNED,
    },
    optional={
        "topic": TOPIC,
        "partition": SIGNED,
        "offset": INTEGER,
        "owner": TEXT | st.just("c1/data/other/data.other"),
    },
)
MEMORY = some(
    slots=INTEGER, openObjects=INTEGER, maxOpenObjects=INTEGER, partSize=INTEGER, activePartitions=INTEGER,
    remainderBytes=INTEGER, bufferedBytes=INTEGER, spilledBytes=INTEGER, appliedBytes=INTEGER, jvmBytes=INTEGER,
    pythonBytes=INTEGER,
)  # fmt: skip
TOTALS = some(records=INTEGER, bytes=INTEGER, objects=INTEGER, lost=INTEGER)
REPORT = st.fixed_dictionaries(
    {
        "sinkId": st.just("data.flights"),
        "name": st.just("flights"),
        "namespace": st.just("data"),
        "state": st.sampled_from([each.value for each in RunState]),
        "now": MOMENT,
        "startedAt": MOMENT,
    },
    optional={
        "epoch": INTEGER,
        "round": INTEGER,
        "assignedPartitions": INTEGER,
        "activePartitions": INTEGER,
        "partitions": st.lists(PARTITION, max_size=4, unique_by=lambda each: (each["topic"], each["partition"])),
        "sums": some(lag=INTEGER, lagMs=SIGNED, topics=st.lists(SUM, max_size=3)),
        "logEndsAt": MOMENT,
        "hangingTransactions": st.lists(HANGING, max_size=5),
        "totals": TOTALS,
        "lastPublish": MOMENT,
        "memory": MEMORY,
        "executorDenial": TEXT.map(lambda text: text[:1_024]),
        "executorRejection": TEXT.map(lambda text: text[:1_024]),
        "noProgressMs": INTEGER,
        "failure": FAILURE,
    },
)
POSITION = st.fixed_dictionaries({"topic": TOPIC, "partition": st.sampled_from([0, 2**31 - 1]), "next": INTEGER})
FINAL = some(
    epoch=INTEGER,
    round=INTEGER,
    totals=TOTALS,
    lag=INTEGER,
    openObjects=INTEGER,
    partitions=INTEGER,
    published=st.booleans(),
    failure=FAILURE,
    positions=st.lists(POSITION, max_size=25),
)


def texts(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [text for each in node.items() for text in texts(list(each))]
    if isinstance(node, list):
        return [text for each in node for text in texts(each)]
    return [node] if isinstance(node, str) else []


def check(cluster: Cluster, decision: Decision) -> None:
    """What holds for the writes of each decision."""
    if decision.status is not None:
        STATUS_SCHEMA.validate(decision.status)
        assert len(json.dumps(decision.status)) < MAX_STATUS_BYTES
        conditions = decision.status["conditions"]
        attempts = decision.status.get("attempts", [])
        for text in texts(conditions) + texts(attempts):
            check_text(text)
    for event in decision.events:
        check_text(event.message)
    for pod in (*decision.writes.create, *decision.writes.apply):
        assert len(json.dumps(pod)) < MAX_STATUS_BYTES


def check_text(text: str) -> None:
    unsafe = [each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert not unsafe, repr(text[:200])
    assert len(text) <= 4_096


def passes(cluster: Cluster) -> None:
    """Passes until nothing is left to write: a hostile input costs a number of writes, not a write each pass."""
    for _ in range(12):
        decision = cluster.decide()
        check(cluster, decision)
        if not cluster.reconcile():
            return
    raise AssertionError(f"it does not end: {cluster.log[-12:]}")


MODES = st.sampled_from([{"mode": "Local"}, {"mode": "Cluster"}, {"mode": "Cluster", "scaling": {"mode": "Auto"}}])


@settings(max_examples=40)
@given(MODES, REPORT, REPORT)
def test_no_report_fails_a_pass_or_makes_a_status_that_the_api_server_rejects(
    mode: Json, first: Json, second: Json
) -> None:
    cluster = running(executor=mode)
    for document in (first, second):
        cluster.report = LimitedReport.model_validate_json(json.dumps(document))
        passes(cluster)
        cluster.wait(31_000)


ENDED = st.fixed_dictionaries(
    {"exitCode": st.sampled_from([0, 1, 4, 75, 137, 2**31 - 1, -1])},
    optional={
        "reason": TEXT,
        "message": TEXT | FINAL.map(json.dumps),
        "finishedAt": TEXT | st.just("2025-11-01T00:00:00Z"),
    },
)
WAITING = st.fixed_dictionaries(
    {"reason": TEXT | st.sampled_from(["ImagePullBackOff", "CreateContainerConfigError"])},
    optional={"message": TEXT | st.just('secret "\x1b[2J" not found')},
)
POD_STATUS = st.fixed_dictionaries(
    {"phase": st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown", "\x00"])},
    optional={
        "reason": TEXT | st.just("Evicted"),
        "message": TEXT,
        "podIP": TEXT,
        "conditions": st.lists(
            st.fixed_dictionaries(
                {"type": st.just("PodScheduled"), "status": st.just("False")}, optional={"message": TEXT}
            ),
            max_size=1,
        ),
        "containerStatuses": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["s3sink", "sidecar"])},
                optional={"state": some(terminated=ENDED, waiting=WAITING), "restartCount": INTEGER},
            ),
            max_size=2,
        ),
    },
)


LONG_EVICTION = {"phase": "Failed", "reason": "Evicted", "message": "x" * 5_000}


@settings(max_examples=60)
@given(MODES, POD_STATUS, st.sampled_from(["Running", "Stopped"]))
@example({"mode": "Local"}, LONG_EVICTION, "Running")
def test_no_pod_status_fails_a_pass_or_makes_a_status_that_the_api_server_rejects(
    mode: Json, status: Json, state: str
) -> None:
    cluster = running(executor=mode)
    cluster.edit(state=state)
    while state == "Stopped" and cluster.operation is None:
        cluster.reconcile()
    pod = cluster.driver or cluster.operation
    assert pod is not None
    pod["status"] = copy.deepcopy(status)
    if status["phase"] != "Running":
        cluster.report = None
    passes(cluster)


ANNOTATIONS = (
    names.RESTART_ANNOTATION, names.STATE_ANNOTATION, names.RESET_OFFSETS_ANNOTATION, names.TAKE_OVER_ANNOTATION,
    names.RECONCILE_PAUSED_ANNOTATION,
)  # fmt: skip
JSON_TEXTS = [
    "null",
    "1e999",
    "NaN",
    "[]",
    '{"nonce": 7}',
    '{"nonce": "\\u001b[2J", "to": "Earliest"}',
    '{"nonce":"a","to":["x"]}',
]


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(ANNOTATIONS), TEXT | st.sampled_from(JSON_TEXTS)),
    st.sampled_from(["Running", "Stopped"]),
)
def test_no_annotation_fails_a_pass_or_makes_a_status_that_the_api_server_rejects(
    annotations: dict[str, str], state: str
) -> None:
    cluster = running()
    cluster.edit(state=state)
    cluster.annotate(annotations)
    passes(cluster)
