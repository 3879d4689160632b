"""The cases that are searched: with every rule in force, and one for each omitted rule."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from model.model_state import Case, Command


class Omission(NamedTuple):
    """If `rules` are omitted, the search finds that `invariant` is broken in `case`."""

    rules: tuple[str, ...]
    invariant: str
    case: Case

    @property
    def without(self) -> Case:
        return replace(self.case, without=self.rules)


TINY = Case(records=1)
SMALL = Case(records=2)
ALONE = Case(records=2, drivers=1)
TURNS = Case(records=1, paths="clock")
"""The second driver writes to another path: the worst result of dividing the same records twice."""
SNAPSHOTS = Case(records=2, snapshot_every=1)
BACKWARD = Case(records=3, drivers=1, rounds=(1,), paths="clock", clocks=(0, 1, 0), faults=("vanish",))
"""The host's clock is ahead for one round."""
GROWING = Case(records=3, part=1, rounds=(1,), snapshot_every=1)
"""One upload that gets a part in each round and stays open while older records are dropped."""

TOPIC = Case(records=2, rounds=(2,), paths="rejected", topic=True)
"""A record, and a dead letter for a topic."""

SHARED = Case(records=4, drivers=1, paths="data", scope="object", apart=True)
"""Two partitions with staged remainders in one staging object, which they release at different times."""

SKIPPING = Case(records=3, drivers=1, skips=(1,), faults=("vanish",))
"""A record between two others of its object that is skipped."""

DISCARD = Command("discard")
RESET = Command("reset", "a", 0)
"""To the first record, into a new directory."""
BACK = Command("reset", "a", 0, "Fail")
ONE = Command("reset", "a", 1, "Fail")
LATEST = Command("reset", "a", "latest", "Fail")
APART = Command("reset", "a", "latest")
OTHER = Command("reset", "b", 0)

REPAIR = Command("repair")
ACCEPT = Command("accept")

DAMAGE = Case(records=2, rounds=(1,), part=1, drivers=1, commands=(REPAIR,), faults=("damaged",))
"""Another program damages one of two objects."""
LOSS = Case(records=2, rounds=(2,), drivers=1, commands=(ACCEPT,), faults=("damaged",))

LOST_AND_RESTORED = replace(LOSS, records=1, commands=(REPAIR, ACCEPT), faults=("deleted",), verified=True)
"""A repair restores an object while another command accepts its loss."""

DISCARDED = Case(records=1, drivers=1, commands=(DISCARD,))
RESETTING = Case(records=1, drivers=1, commands=(RESET,))
PATHS = Case(records=4, rounds=(2,), drivers=1, paths="data", scope="object", commands=(DISCARD,))
AGAIN = Case(records=1, drivers=1, inherits="closed", alone=True, commands=(RESET, RESET))
"""An object is closed, and the command is issued twice: the first one still works, or was killed."""
SLEEPER = Case(records=1, inherits="commit", commands=(RESET,))
"""The first driver sleeps between its check of the head and its commit; another driver starts after the reset."""

QUICK = {
    "one driver": Case(records=3, drivers=1, snapshot_every=2),
    "two drivers": SMALL,
    "two drivers and two paths": replace(SMALL, paths="data"),
    "two schemas of one path": replace(ALONE, schemas="data"),
    "a lost upload of two schemas": Case(records=3, rounds=(3,), drivers=1, schemas="data", faults=("vanish",)),
    "two drivers whose clocks differ": replace(SMALL, paths="clock"),
    "a clock that is set back": BACKWARD,
    "a clock that is set back, with scope Object": replace(BACKWARD, records=4, clocks=(0, 1, 0, 1), scope="object"),
    "two drivers and snapshots": SNAPSHOTS,
    "a foreign object at a key of the sink": replace(SMALL, foreign="object"),
    "a foreign upload beside that of the sink": replace(SMALL, foreign="upload"),
    "a lost staging object of two partitions": replace(SHARED, faults=("staging lost",)),
    "a damaged staging object of two partitions": replace(SHARED, faults=("staging damaged",)),
    "a reader, and a group whose offset expires": replace(SMALL, faults=("moved", "group set back")),
    "a lost upload, and a group that another program sets forward": replace(
        SMALL, faults=("vanish", "group set forward")
    ),
    "a lost upload of two paths": Case(records=3, rounds=(3,), paths="data", faults=("vanish",)),
    "a lost upload beside dead letters": Case(records=4, rounds=(4,), drivers=1, paths="rejected", faults=("vanish",)),
    "a lost upload beside dead letters whose schema ids are known later": Case(
        records=3, rounds=(3,), drivers=1, paths="unknown", faults=("vanish",)
    ),
    "two drivers and dead letters": replace(SMALL, paths="unknown"),
    "a skipped record that a second driver does not know": replace(SMALL, records=3, skips=(1,)),
    "a skipped record between two paths": replace(SMALL, records=3, paths="data", skips=(1,), scope="object"),
    "a lost upload beside a skipped record": SKIPPING,
    "a lost staging object beside a skipped record": replace(SKIPPING, rounds=(1, 2), faults=("staging lost",)),
    "two drivers and a dead-letter topic": TOPIC,
    "a dead-letter topic and a lost upload": replace(TOPIC, drivers=1, faults=("vanish",)),
    "a dead-letter topic whose number expires": replace(TOPIC, faults=("number expires",)),
    "a dead-letter topic and a discard": replace(TOPIC, commands=(DISCARD,)),
    "a discard": replace(DISCARDED, records=2, verified=True),
    "a reset": replace(RESETTING, verified=True),
    "a reset that a driver sleeps through": replace(SLEEPER, verified=True),
    "two discards": replace(AGAIN, inherits="open", commands=(DISCARD, DISCARD)),
    "a discard whose object is lost": replace(DISCARDED, inherits="open", faults=("vanish",)),
    "a discard and a reset": replace(AGAIN, inherits="open", commands=(DISCARD, BACK)),
    "a reset and a discard": replace(AGAIN, inherits="open", commands=(RESET, DISCARD)),
    "a reset back to objects that were moved away": replace(RESETTING, commands=(BACK,), faults=("moved",)),
    "a reset to the log end": Case(records=2, drivers=1, inherits="closed", commands=(LATEST,)),
    "a repair beside a driver": DAMAGE,
    "a repair of what is deleted and written by another program": replace(DAMAGE, faults=("deleted", "overwritten")),
    "two repairs": replace(DAMAGE, records=1, commands=(REPAIR, REPAIR)),
    "a repair and a reset": replace(DAMAGE, records=1, commands=(BACK, REPAIR), faults=("deleted",)),
    "an accepted loss": replace(LOSS, verified=True),
    "an accepted loss and snapshots": replace(LOSS, rounds=(1,), snapshot_every=1, verified=True),
    "two accepted losses": replace(LOSS, commands=(ACCEPT, ACCEPT), verified=True),
    "a repair and an accepted loss": LOST_AND_RESTORED,
    "a repair and an accepted loss of a damaged object": replace(LOST_AND_RESTORED, faults=("damaged",)),
    "two resets": replace(AGAIN, commands=(RESET, OTHER)),
}
"""Cases in which every invariant holds; the search of each takes about a second."""

LARGE = {
    "three records and snapshots": Case(records=3, snapshot_every=2),
    "cleaning up before publishing": Case(records=3, snapshot_every=1, cleans_first=True),
    "both drivers starting": Case(records=2, snapshot_every=1, claiming=True),
    "three drivers": replace(TINY, drivers=3),
    "three records and a dead-letter topic": replace(TOPIC, records=3),
    "staged remainders that are merged": Case(records=4, part=3, chain=1),
    "two drivers and two partitions that share staging objects": replace(
        SHARED, records=3, drivers=2, faults=("staging lost",)
    ),
    "scope Object": Case(records=3, paths="data", scope="object"),
    "two schemas and scope Object": Case(records=3, schemas="data", scope="object"),
    "open objects written again": Case(
        records=3, part=1, rounds=(2,), paths="data", rewrite_open=True, faults=("vanish",)
    ),
    "open objects rebuilt": Case(records=3, part=1, rounds=(2,), paths="data", scope="object", faults=("vanish",)),
    "several faults": Case(
        records=1,
        snapshot_every=1,
        faults=("vanish", "late part", "moved", "record reply lost", "completion reply lost"),
    ),
    "a repair beside two drivers": replace(DAMAGE, drivers=2),
    "a repair of what is damaged and written by another program": replace(
        DAMAGE, drivers=2, records=1, faults=("damaged", "overwritten")
    ),
    "an accepted loss and two drivers": replace(LOSS, drivers=2, verified=True),
    "a reset and two drivers": replace(RESETTING, drivers=2),
    "a reset of two records": replace(RESETTING, records=2),
    "a reset and old listings": replace(RESETTING, at_once=False, snapshot_every=1),
    "a reset whose replies are lost": replace(
        RESETTING, inherits="open", faults=("record reply lost", "completion reply lost")
    ),
    **{
        f"fault: {fault}": replace(SNAPSHOTS, faults=(fault,))
        for fault in (
            "vanish",
            "staging lost",
            "staging damaged",
            "record reply lost",
            "completion reply lost",
            "late part",
            "late other part",
            "late staging",
            "late upload",
            "late intent",
            "moved",
            "busy",
            "error in 200",
            "snapshot lost",
        )
    },
}
"""Larger cases in which every invariant holds."""

OMISSIONS = [
    Omission(("p2.recorded-first",), "duplicate", TURNS),
    Omission(("p2.rebuilt",), "duplicate", Case(records=3, drivers=1, paths="data", faults=("vanish",))),
    Omission(("p2.runs",), "duplicate", Case(records=3, drivers=1, paths="data", faults=("vanish",))),
    Omission(("p2.schemas",), "duplicate", Case(records=3, drivers=1, schemas="data", faults=("vanish",))),
    Omission(
        ("p2.rejected",), "duplicate", Case(records=4, rounds=(4,), drivers=1, paths="rejected", faults=("vanish",))
    ),
    Omission(("p2.unknown-left-out",), "duplicate", Case(records=3, drivers=1, paths="unknown", faults=("vanish",))),
    Omission(("p2.unknown-rejected",), "lost", replace(ALONE, paths="unknown", faults=("vanish",))),
    Omission(("p2.skipped-left-out",), "skipped", SKIPPING),
    Omission(("p2.skipped-recorded",), "group ahead", replace(SKIPPING, faults=())),
    Omission(("p2.clocks",), "lost", replace(SMALL, paths="clock", faults=("vanish",))),
    Omission(("p2.clock-forward",), "duplicate", BACKWARD),
    Omission(("p2.same-key",), "wrong key", replace(ALONE, faults=("vanish",))),
    Omission(("p2.replacing-record",), "duplicate", replace(SMALL, faults=("vanish", "moved"))),
    Omission(("p2.rewrite-from",), "conflict", Case(records=4, drivers=1, rewrite_open=True, faults=("vanish",))),
    Omission(
        ("p2.scope-object",),
        "conflict",
        Case(records=5, rounds=(2, 3), drivers=1, paths="data", scope="object", rewrite_open=True, faults=("vanish",)),
    ),
    Omission(("p4.conditional",), "duplicate", TURNS),
    Omission(("p4.claim-first",), "removed in use", SMALL),
    Omission(("p4.claims-kept",), "duplicate", replace(SNAPSHOTS, rounds=(1,), paths="clock")),
    Omission(("p4.check-higher", "p4.check-snapshot"), "removed in use", replace(GROWING, cleans_first=True)),
    Omission(("p4.check-gap",), "lost", Case(records=3, rounds=(1,), paths="data", faults=("record lost",))),
    Omission(("p4.acts-after-check",), "removed in use", GROWING),
    Omission(("p4.above-snapshot",), "no progress", replace(GROWING, snapshot_every=2)),
    Omission(("p4.own-record",), "fenced without claim", replace(ALONE, faults=("record reply lost",))),
    Omission(("p4.frozen-body",), "duplicate", replace(SMALL, paths="clock", faults=("record reply lost",))),
    Omission(("p4.fenced-stops",), "duplicate", TURNS),
    Omission(("p4.fenced-aborts-own",), "removed in use", Case(records=3)),
    Omission(
        ("p4.replaced-after-record",),
        "removed in use",
        Case(records=3, part=1, rounds=(2,), paths="data", faults=("vanish",)),
    ),
    Omission(("p5.acknowledged-first",), "duplicate", replace(SMALL, faults=("moved",))),
    Omission(("p5.output-only",), "lost", replace(ALONE, faults=("vanish", "group set forward"))),
    Omission(("p6.staged-first",), "missing", ALONE),
    Omission(("p6.unique-names",), "missing", replace(ALONE, faults=("late staging",))),
    Omission(("p6.verified",), "lost", replace(ALONE, faults=("staging damaged",))),
    Omission(("p6.missing",), "lost", replace(ALONE, faults=("staging lost",))),
    Omission(("p6.still-referenced",), "removed in use", SHARED),
    Omission(("p9.conditional",), "foreign changed", replace(TINY, drivers=1, foreign="object")),
    Omission(("p9.recorded-etags",), "lost", replace(ALONE, faults=("late other part",))),
    Omission(("p9.observed-visible",), "lost", replace(ALONE, paths="data", faults=("vanish",))),
    Omission(("p9.recovery-publishes",), "lost", SMALL),
    Omission(("p9.already-complete",), "needless rebuild", replace(ALONE, faults=("completion reply lost",))),
    Omission(("p9.rebuild",), "lost", replace(ALONE, faults=("vanish",))),
    Omission(("p9.equal",), "conflict", replace(ALONE, faults=("completion reply lost",))),
    Omission(("p9.different",), "lost", replace(TINY, drivers=1, foreign="object")),
    Omission(("p9.error-in-200",), "lost", replace(ALONE, faults=("error in 200",))),
    Omission(("p9.unusable",), "no progress", replace(ALONE, faults=("late part",))),
    Omission(("p9.unusable-aborted",), "duplicate", replace(SMALL, faults=("busy", "moved"))),
    Omission(("p10.intent",), "orphans", SMALL),
    Omission(
        ("p10.intent-names",),
        "orphans",
        Case(records=2, part=1, rounds=(1,), alone=True, commands=(LATEST,), faults=("late intent",)),
    ),
    Omission(("p10.after-claim",), "removed in use", SMALL),
    Omission(("p10.could-have-opened",), "foreign changed", replace(TINY, foreign="upload")),
    Omission(("p10.unreferenced",), "removed in use", Case(records=3)),
    Omission(("p10.started-before",), "removed in use", replace(SNAPSHOTS, records=3)),
    Omission(("p10.lower-epochs",), "missing", replace(SNAPSHOTS, records=3)),
    Omission(("p10.superseded",), "orphans", ALONE),
    Omission(("p10.published-first",), "unlisted", replace(TINY, snapshot_every=1)),
    Omission(
        ("p10.two-snapshots",), "duplicate", replace(SNAPSHOTS, rounds=(1,), paths="clock", faults=("snapshot lost",))
    ),
    Omission(("reset.claim",), "repeated", replace(AGAIN, records=2, part=1, rounds=(1,), snapshot_every=1)),
    Omission(("reset.claims-first",), "fenced without claim", RESETTING),
    Omission(("reset.concurrent-reset",), "repeated", AGAIN),
    Omission(("reset.published-first",), "late", RESETTING),
    Omission(("reset.acknowledged",), "verify", replace(RESETTING, inherits="closed", verified=True)),
    Omission(("reset.left-to-driver",), "ended", replace(RESETTING, faults=("vanish",))),
    Omission(("reset.existing-objects",), "duplicate", replace(RESETTING, records=2, commands=(ONE,))),
    Omission(("reset.checks-again",), "duplicate", replace(RESETTING, records=2, commands=(ONE,))),
    Omission(("reset.intent",), "orphans", replace(RESETTING, inherits="open", commands=(LATEST,))),
    Omission(("reset.intent-settings",), "orphans", replace(RESETTING, inherits="open", commands=(APART,))),
    Omission(("reset.record-first",), "missing", replace(DISCARDED, inherits="open")),
    Omission(("reset.ended",), "ended", replace(RESETTING, inherits="open")),
    Omission(("reset.once",), "repeated", AGAIN),
    Omission(("reset.in-all-claims",), "repeated", replace(AGAIN, in_turn=True, commands=(RESET, OTHER, RESET))),
    Omission(("reset.same-request",), "reported", replace(AGAIN, commands=(RESET, LATEST))),
    Omission(("reset.commit-metadata",), "duplicate", replace(SLEEPER, faults=("moved", "completion reply lost"))),
    Omission(("reset.readers",), "duplicate", replace(SLEEPER, faults=("moved", "completion reply lost"))),
    Omission(("topic.before-acknowledgement",), "lost", TOPIC),
    Omission(("topic.one-transaction",), "duplicate", TOPIC),
    Omission(("topic.fences",), "duplicate", TOPIC),
    Omission(("topic.read-after-start",), "duplicate", TOPIC),
    Omission(("topic.reads-again",), "duplicate", TOPIC),
    Omission(("topic.searches",), "duplicate", replace(TOPIC, faults=("number expires",))),
    Omission(("topic.not-beside-lost",), "lost", replace(TOPIC, drivers=1, rounds=(2,), faults=("vanish",))),
    Omission(("topic.left-to-driver",), "lost", replace(TOPIC, commands=(DISCARD,))),
    Omission(("repair.recorded-bytes",), "duplicate", DAMAGE),
    Omission(("repair.condition",), "discarded", replace(DAMAGE, records=1, faults=("deleted", "overwritten"))),
    Omission(("repair.kept-first",), "discarded", DAMAGE),
    Omission(("repair.generation",), "late", replace(DAMAGE, records=1, commands=(BACK, REPAIR), faults=("deleted",))),
    Omission(("loss.claim",), "fenced without claim", replace(LOSS, rounds=(1,))),
    Omission(("loss.whole-object",), "verify", replace(LOSS, verified=True)),
    Omission(("loss.bucket-decides",), "verify", LOST_AND_RESTORED),
    Omission(("discard.rewinds",), "lost", replace(DISCARDED, inherits="open")),
    Omission(("discard.scope-object",), "conflict", PATHS),
]
"""The invariant that each rule protects; two rules that replace each other are omitted together."""

REDUNDANT = {
    "p4.check-higher": replace(GROWING, cleans_first=True),
    "p4.check-snapshot": replace(GROWING, cleans_first=True),
    "p4.checks-head": SNAPSHOTS,
    "p9.state-keeps": SNAPSHOTS,
    "p9.equal-abort": replace(SMALL, faults=("busy",)),
    "p10.acknowledged": SNAPSHOTS,
}
"""Rules that can be omitted alone without a broken invariant in these cases, because other rules cover them."""
