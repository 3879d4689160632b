"""The status as the CRD types it: what people, `kubectl wait`, Argo CD and autoscalers read is fixed.

What explains a figure (the inputs of memory, a job's sums) may grow without another CRD: there unknown fields are kept.
Sizes are Kubernetes quantities, times RFC 3339, durations whole seconds.
"""

from __future__ import annotations

from typing import Any, Final

from sink_job.api.enums import ResetTo, State

Json = dict[str, Any]

MAX_MOST_LAGGING: Final = 20
"""Topic-partitions with the largest lag that are told one by one."""
MAX_ATTEMPTS: Final = 5
"""The last attempts that are told."""


def _text(about: str, **more: Any) -> Json:
    return {"type": "string", "description": about, **more}


def _time(about: str) -> Json:
    return _text(about, format="date-time")


def _number(about: str, **more: Any) -> Json:
    return {"type": "integer", "format": "int64", "description": about, **more}


def _section(about: str, fields: dict[str, Json], *, free: bool = True) -> Json:
    made: Json = {"type": "object", "description": about} | ({"properties": fields} if fields else {})
    return made | ({"x-kubernetes-preserve-unknown-fields": True} if free else {})


def _list(about: str, items: Json, *, most: int, keys: tuple[str, ...] = ()) -> Json:
    kind: Json = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}
    needed = {"required": list(keys)} if keys else {}
    item = {name: value for name, value in items.items() if name != "description"} | needed
    return {"type": "array", "description": about, "maxItems": most, "items": item} | kind


_CONDITION: Final = _section(
    "",
    {
        "type": _text("What it is about.", minLength=1, maxLength=316),
        "status": _text("Whether it is so.", enum=["True", "False", "Unknown"]),
        "reason": _text(
            "Why, in one word.", minLength=1, maxLength=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
        ),
        "message": _text("What is so and what to do, in a sentence.", maxLength=32768),
        "lastTransitionTime": _time("When its status last changed."),
        "observedGeneration": _number("The generation of the spec that it speaks of.", minimum=0),
    },
    free=False,
) | {"required": ["type", "status", "lastTransitionTime", "reason", "message"]}

_PARTITION: Final = _section(
    "",
    {
        "topic": _text("The topic."),
        "partition": _number("The partition."),
        "committed": _number("First offset that is not in a visible object."),
        "end": _number("End of the log, as far as committed records go."),
        "lag": _number("Records that are not in a visible object."),
        "lagSeconds": _number("Age of the oldest of them, in seconds."),
    },
)

_TOPIC: Final = _section(
    "",
    {
        "topic": _text("The topic."),
        "partitions": _number("Its partitions that the sink reads."),
        "lag": _number("Records that are not in a visible object."),
        "lagSeconds": _number("Age of the oldest of them, in seconds."),
    },
)

_CONNECTOR: Final = _section(
    "What the job tells of itself.",
    {
        "phase": _text("What the sink does: Starting, Recovering, Running, Stopping, Paused, Stopped or Failed."),
        "partitions": _section(
            "Topic-partitions.",
            {
                "assigned": _number("Those that the sink reads."),
                "active": _number("Those that had records in the last round."),
            },
        ),
        "records": _number("Records written by this attempt, those of open objects included."),
        "objects": _number("Objects made visible by this attempt."),
        "bytes": _number("Bytes of those records, encoded and before compression."),
        "lastPublishTime": _time("When an object was last made visible."),
        "openObjects": _number("Objects that are not visible yet."),
        "lost": _number("Offsets given up because Kafka no longer held them (onDataLoss: Continue)."),
        "epoch": _number("The claim on the ledger under which the job runs."),
        "round": _number("The last round in the ledger."),
        "updatedTime": _time("When this was written."),
        "lag": _section(
            "How far behind the sink is.",
            {
                "records": _number("Records that are not in a visible object."),
                "seconds": _number("Age of the oldest of them, in seconds."),
            },
        ),
        "topics": _list("Sums by topic.", _TOPIC, most=1000, keys=("topic",)),
        "worst": _list(
            "The topic-partitions with the largest lag.", _PARTITION, most=MAX_MOST_LAGGING, keys=("topic", "partition")
        ),
    },
)

_MEMORY: Final = _section(
    "The memory of an executor, and how it was chosen.",
    {
        "current": _text("What executors have."),
        "wanted": _text("What they need."),
        "inputs": _section("What the need was computed from.", {}),
        "lastChange": _section(
            "The last change.",
            {
                "time": _time("When."),
                "from": _text("Before it."),
                "to": _text("After it."),
                "reason": _text("Why, in a sentence."),
            },
        ),
        "driverFloor": _text("What a kill has taught that a driver beside executors needs at least, for a week."),
        "nextAllowed": _time("Before this time memory is not changed again, save after it ran out."),
    },
)

_ATTEMPT: Final = _section(
    "",
    {
        "number": _number("Its number, which its pods carry as a label."),
        "started": _time("When its driver was made."),
        "ended": _time("When its driver ended."),
        "reason": _text("Why it ended, in one word."),
        "message": _text("Why it ended, in a sentence."),
        "exitCode": _number("Exit code of its driver."),
        "next": _text("Where the next attempt starts: the round of the ledger."),
    },
)

_RETRY: Final = _section(
    "What follows a failure.",
    {
        "failures": _number("Failures in a row."),
        "nextTry": _time("When the next attempt is made."),
    },
)

_OFFSETS: Final = _section(
    "The last request about offsets that was carried out.",
    {
        "nonce": _text("Which request."),
        "to": _text("Where it asked to start.", enum=[to.value for to in ResetTo]),
        "time": _time("When it was carried out."),
        "result": _text("Whether it was done or refused."),
        "message": _text("How it ended, in a sentence."),
        "generation": _number("Of the ledger; the first reset begins 2."),
        "topicsDir": _text("Where objects go since."),
        "copiedAgain": _number("Offsets in objects of before that are copied again."),
        "skipped": _number("Offsets that are in no object and are not copied."),
        "partitions": _list(
            "Where the first topic-partitions start now.",
            _section(
                "",
                {
                    "topic": _text("The topic."),
                    "partition": _number("The partition."),
                    "offset": _number("The first offset that is copied next."),
                },
            ),
            most=MAX_MOST_LAGGING,
            keys=("topic", "partition"),
        ),
    },
)

STATUS: Final = _section(
    "What goes on. Written by the operator; losing it is safe.",
    {
        "observedGeneration": _number("The generation of the spec that the status speaks of.", minimum=0),
        "conditions": _list(
            "Ready, Reconciling and Stalled; DataLoss, ObjectConflict, MemoryCapped and InvalidSpec.",
            _CONDITION,
            most=32,
            keys=("type",),
        )
        | {"items": {name: value for name, value in _CONDITION.items() if name != "description"}},
        "state": _section(
            "What is wanted, and who says so.",
            {
                "wanted": _text("What is wanted.", enum=[state.value for state in State]),
                "by": _text("What says so: spec.state or an annotation."),
            },
        ),
        "connector": _CONNECTOR,
        "memory": _MEMORY,
        "attempts": _list("The last attempts, the newest first.", _ATTEMPT, most=MAX_ATTEMPTS),
        "retry": _RETRY,
        "offsets": _OFFSETS,
        "replicas": _number("Executor pods that are there.", minimum=0),
        "selector": _text("Selects the executor pods."),
    },
    free=False,
)
