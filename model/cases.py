"""The small worlds that are searched: with every sentence in force, and one for each sentence that is missed."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from model.model_state import Case, Command


class Missed(NamedTuple):
    """Without `sentences` the search finds that `invariant` is broken in `case`."""

    sentences: tuple[str, ...]
    invariant: str
    case: Case

    @property
    def without(self) -> Case:
        return replace(self.case, without=self.sentences)


TINY = Case(records=1)
SMALL = Case(records=2)
ALONE = Case(records=2, drivers=1)
TURNS = Case(records=1, paths="clock")
"""What the second driver cuts goes to another path: the worst that can follow from cutting anything twice."""
SNAPSHOTS = Case(records=2, snapshot_every=1)
BACKWARD = Case(records=3, drivers=1, rounds=(1,), paths="clock", clocks=(0, 1, 0), faults=("vanish",))
"""A host's clock that is set ahead for one round."""
GROWING = Case(records=3, part=1, rounds=(1,), snapshot_every=1)
"""One upload that gets a part a round and lives on while records are dropped behind it."""

SHARED = Case(records=4, drivers=1, paths="data", scope="object", apart=True)
"""Two partitions with leftovers in one staging object, each of which is done with it at another time."""

DISCARD = Command("discard")
RESET = Command("reset", "a", 0)
"""To the first record, into a directory of its own."""
BACK = Command("reset", "a", 0, "Fail")
ONE = Command("reset", "a", 1, "Fail")
LATEST = Command("reset", "a", "latest", "Fail")
APART = Command("reset", "a", "latest")
OTHER = Command("reset", "b", 0)

DISCARDED = Case(records=1, drivers=1, commands=(DISCARD,))
RESETTING = Case(records=1, drivers=1, commands=(RESET,))
PATHS = Case(records=4, rounds=(2,), drivers=1, paths="data", scope="object", commands=(DISCARD,))
AGAIN = Case(records=1, drivers=1, inherits="named", alone=True, commands=(RESET, RESET))
"""An object is named, and the command is given twice: the second time while the first is at work, or was killed."""
SLEEPER = Case(records=1, inherits="commit", commands=(RESET,))
"""The first driver sleeps between its look at the head and its commit, and another one comes after the reset."""

QUICK = {
    "one driver": Case(records=3, drivers=1, snapshot_every=2),
    "two drivers": SMALL,
    "two drivers and two paths": replace(SMALL, paths="data"),
    "two drivers whose clocks differ": replace(SMALL, paths="clock"),
    "a clock that is set back": BACKWARD,
    "a clock that is set back, and scope Object": replace(BACKWARD, records=4, clocks=(0, 1, 0, 1), scope="object"),
    "two drivers and snapshots": SNAPSHOTS,
    "somebody else's object at our key": replace(SMALL, foreign="object"),
    "somebody else's upload beside ours": replace(SMALL, foreign="upload"),
    "a lost staging object of two partitions": replace(SHARED, faults=("staging lost",)),
    "a damaged staging object of two partitions": replace(SHARED, faults=("staging damaged",)),
    "a reader, and a group whose offset is forgotten": replace(SMALL, faults=("moved", "group set back")),
    "a lost upload, and a group that somebody sets forward": replace(SMALL, faults=("vanish", "group set forward")),
    "a lost upload of two paths": Case(records=3, rounds=(3,), paths="data", faults=("vanish",)),
    "a discard": replace(DISCARDED, records=2, verified=True),
    "a reset": replace(RESETTING, verified=True),
    "a reset that a driver sleeps through": replace(SLEEPER, verified=True),
    "two discards": replace(AGAIN, inherits="open", commands=(DISCARD, DISCARD)),
    "a discard whose object is lost": replace(DISCARDED, inherits="open", faults=("vanish",)),
    "a discard and a reset": replace(AGAIN, inherits="open", commands=(DISCARD, BACK)),
    "a reset and a discard": replace(AGAIN, inherits="open", commands=(RESET, DISCARD)),
    "a reset back to what was moved away": replace(RESETTING, commands=(BACK,), faults=("moved",)),
    "a reset behind all": Case(records=2, drivers=1, inherits="named", commands=(LATEST,)),
    "two resets": replace(AGAIN, commands=(RESET, OTHER)),
}
"""Cases in which everything holds, each searched within a second or so."""

LARGE = {
    "three records and snapshots": Case(records=3, snapshot_every=2),
    "cleaning up before publishing": Case(records=3, snapshot_every=1, cleans_first=True),
    "both drivers starting": Case(records=2, snapshot_every=1, claiming=True),
    "three drivers": replace(TINY, drivers=3),
    "leftovers that are gathered": Case(records=4, part=3, chain=1),
    "two drivers and two partitions that share staging objects": replace(
        SHARED, records=3, drivers=2, faults=("staging lost",)
    ),
    "scope Object": Case(records=3, paths="data", scope="object"),
    "open objects cut anew": Case(records=3, part=1, rounds=(2,), paths="data", recut=True, faults=("vanish",)),
    "open objects rebuilt": Case(records=3, part=1, rounds=(2,), paths="data", scope="object", faults=("vanish",)),
    "several faults": Case(
        records=1,
        snapshot_every=1,
        faults=("vanish", "late part", "moved", "record reply lost", "completion reply lost"),
    ),
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
"""Larger ones."""

MISSED = [
    Missed(("p2.recorded-first",), "doubled", TURNS),
    Missed(("p2.rebuilt",), "doubled", Case(records=3, drivers=1, paths="data", faults=("vanish",))),
    Missed(("p2.runs",), "doubled", Case(records=3, drivers=1, paths="data", faults=("vanish",))),
    Missed(("p2.clocks",), "lost", replace(SMALL, paths="clock", faults=("vanish",))),
    Missed(("p2.clock-forward",), "doubled", BACKWARD),
    Missed(("p2.same-key",), "wrong key", replace(ALONE, faults=("vanish",))),
    Missed(("p2.replacing-record",), "doubled", replace(SMALL, faults=("vanish", "moved"))),
    Missed(("p2.recut-from",), "conflict", Case(records=4, drivers=1, recut=True, faults=("vanish",))),
    Missed(
        ("p2.scope-object",),
        "conflict",
        Case(records=5, rounds=(2, 3), drivers=1, paths="data", scope="object", recut=True, faults=("vanish",)),
    ),
    Missed(("p4.conditional",), "doubled", TURNS),
    Missed(("p4.claim-first",), "named removed", SMALL),
    Missed(("p4.claims-kept",), "doubled", replace(SNAPSHOTS, rounds=(1,), paths="clock")),
    Missed(("p4.check-higher", "p4.check-snapshot"), "named removed", replace(GROWING, cleans_first=True)),
    Missed(("p4.check-gap",), "lost", Case(records=3, rounds=(1,), paths="data", faults=("record lost",))),
    Missed(("p4.then-acts",), "named removed", GROWING),
    Missed(("p4.above-snapshot",), "stuck", replace(GROWING, snapshot_every=2)),
    Missed(("p4.own-record",), "fenced by nobody", replace(ALONE, faults=("record reply lost",))),
    Missed(("p4.frozen-body",), "doubled", replace(SMALL, paths="clock", faults=("record reply lost",))),
    Missed(("p4.fenced-stops",), "doubled", TURNS),
    Missed(("p4.fenced-aborts-own",), "named removed", Case(records=3)),
    Missed(
        ("p4.replaced-after-record",),
        "named removed",
        Case(records=3, part=1, rounds=(2,), paths="data", faults=("vanish",)),
    ),
    Missed(("p5.acknowledged-first",), "doubled", replace(SMALL, faults=("moved",))),
    Missed(("p5.output-only",), "lost", replace(ALONE, faults=("vanish", "group set forward"))),
    Missed(("p6.staged-first",), "not there", ALONE),
    Missed(("p6.unique-names",), "not there", replace(ALONE, faults=("late staging",))),
    Missed(("p6.verified",), "lost", replace(ALONE, faults=("staging damaged",))),
    Missed(("p6.gone",), "lost", replace(ALONE, faults=("staging lost",))),
    Missed(("p6.still-named",), "named removed", SHARED),
    Missed(("p9.conditional",), "foreign harmed", replace(TINY, drivers=1, foreign="object")),
    Missed(("p9.recorded-etags",), "lost", replace(ALONE, faults=("late other part",))),
    Missed(("p9.seen-visible",), "lost", replace(ALONE, paths="data", faults=("vanish",))),
    Missed(("p9.recovery-publishes",), "lost", SMALL),
    Missed(("p9.gone-but-there",), "made again needlessly", replace(ALONE, faults=("completion reply lost",))),
    Missed(("p9.else-rebuild",), "lost", replace(ALONE, faults=("vanish",))),
    Missed(("p9.equal",), "conflict", replace(ALONE, faults=("completion reply lost",))),
    Missed(("p9.different",), "lost", replace(TINY, drivers=1, foreign="object")),
    Missed(("p9.error-in-200",), "lost", replace(ALONE, faults=("error in 200",))),
    Missed(("p9.unusable",), "stuck", replace(ALONE, faults=("late part",))),
    Missed(("p9.unusable-aborted",), "doubled", replace(SMALL, faults=("busy", "moved"))),
    Missed(("p10.intent",), "litter", SMALL),
    Missed(
        ("p10.intent-names",),
        "litter",
        Case(records=2, part=1, rounds=(1,), alone=True, commands=(LATEST,), faults=("late intent",)),
    ),
    Missed(("p10.after-claim",), "named removed", SMALL),
    Missed(("p10.could-have-opened",), "foreign harmed", replace(TINY, foreign="upload")),
    Missed(("p10.not-named",), "named removed", Case(records=3)),
    Missed(("p10.began-before",), "named removed", replace(SNAPSHOTS, records=3)),
    Missed(("p10.lower-epochs",), "not there", replace(SNAPSHOTS, records=3)),
    Missed(("p10.superseded",), "litter", ALONE),
    Missed(("p10.published-first",), "unnamed", replace(TINY, snapshot_every=1)),
    Missed(
        ("p10.two-snapshots",), "doubled", replace(SNAPSHOTS, rounds=(1,), paths="clock", faults=("snapshot lost",))
    ),
    Missed(("reset.claim",), "twice", replace(AGAIN, records=2, part=1, rounds=(1,), snapshot_every=1)),
    Missed(("reset.claims-first",), "fenced by nobody", RESETTING),
    Missed(("reset.another-meanwhile",), "twice", AGAIN),
    Missed(("reset.published-first",), "late", RESETTING),
    Missed(("reset.acknowledged",), "verify", replace(RESETTING, inherits="named", verified=True)),
    Missed(("reset.left-to-driver",), "ended", replace(RESETTING, faults=("vanish",))),
    Missed(("reset.in-the-way",), "doubled", replace(RESETTING, records=2, commands=(ONE,))),
    Missed(("reset.looks-again",), "doubled", replace(RESETTING, records=2, commands=(ONE,))),
    Missed(("reset.intent",), "litter", replace(RESETTING, inherits="open", commands=(LATEST,))),
    Missed(("reset.intent-settings",), "litter", replace(RESETTING, inherits="open", commands=(APART,))),
    Missed(("reset.record-first",), "not there", replace(DISCARDED, inherits="open")),
    Missed(("reset.ended",), "ended", replace(RESETTING, inherits="open")),
    Missed(("reset.once",), "twice", AGAIN),
    Missed(("reset.in-all-claims",), "twice", replace(AGAIN, in_turn=True, commands=(RESET, OTHER, RESET))),
    Missed(("reset.same-request",), "told", replace(AGAIN, commands=(RESET, LATEST))),
    Missed(("reset.marked",), "doubled", replace(SLEEPER, faults=("moved", "completion reply lost"))),
    Missed(("reset.readers",), "doubled", replace(SLEEPER, faults=("moved", "completion reply lost"))),
    Missed(("discard.goes-back",), "lost", replace(DISCARDED, inherits="open")),
    Missed(("discard.scope-object",), "conflict", PATHS),
]
"""What each sentence is needed for; two that stand for each other are taken out together."""

COVERED = {
    "p4.check-higher": replace(GROWING, cleans_first=True),
    "p4.check-snapshot": replace(GROWING, cleans_first=True),
    "p4.looks-first": SNAPSHOTS,
    "p9.state-keeps": SNAPSHOTS,
    "p9.equal-abort": replace(SMALL, faults=("busy",)),
    "p10.acknowledged": SNAPSHOTS,
}
"""Sentences that may be taken out alone without harm in a world this small: others stand behind them."""
