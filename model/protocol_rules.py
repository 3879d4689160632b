"""The sentences of promises P2, P4, P5, P6, P9, P10 and of ADR 5 that a model can check: each can be taken out.

A name is `promise.what`; the text is the promise's own wording. Taking a sentence out makes the drivers do what
somebody who had never read it might have written.
"""

from __future__ import annotations

from collections.abc import Collection

SENTENCES = {
    # P2: the ledger decides
    "p2.recorded-first": "What a round cut is written down before it is visible.",
    "p2.rebuilt": "A named object whose upload is lost is rebuilt: nothing the ledger has named is ever cut again.",
    "p2.runs": "Its recorded members (path, offset runs) are read again.",
    "p2.clocks": "Its members are found again by the round clocks they saw.",
    "p2.clock-forward": "The round clock goes back only where nothing is open.",
    "p2.same-key": "It is written under the same key.",
    "p2.replacing-record": "It is written to a new upload, which a replacing record names.",
    "p2.recut-from": "Open objects may be cut anew, from the first offset that is in no visible or named object.",
    "p2.scope-object": "With `scope: Object`, open ones are rebuilt too.",
    # P4: one writer
    "p4.conditional": "Records are numbered and put with `If-None-Match: *`.",
    "p4.claim-first": "A driver's first write is a claim: a record numbered head + 1, whose number is its epoch.",
    "p4.claims-kept": "Claims are never deleted.",
    "p4.check-higher": "After its claim a driver lists the ledger: any record higher, and it starts over.",
    "p4.check-snapshot": "After its claim a driver lists the snapshots: any equal or higher, and it starts over.",
    "p4.check-gap": "A gap in the records, and it starts over.",
    "p4.then-acts": "Only then does it act.",
    "p4.above-snapshot": "Records numbered at or below the newest snapshot are never applied.",
    "p4.looks-first": "A driver appends a record or checks the head before it commits offsets.",
    "p4.own-record": "A 412 on our own attempt id (the reply was lost) is a success.",
    "p4.frozen-body": "A record's body is frozen before the first try, and what was stored is the state.",
    "p4.fenced-stops": "A driver that is fenced stops: it publishes and commits nothing more.",
    "p4.fenced-aborts-own": "A fenced driver aborts only uploads that it began and never recorded.",
    "p4.replaced-after-record": "What a record replaces is aborted after it: a driver may be fenced and not know.",
    # P5: the committed offset
    "p5.acknowledged-first": "The ledger acknowledges an object before the group's offset passes it.",
    "p5.output-only": "Nothing is decided by the group's offset: whoever sets it, what is lost is rebuilt.",
    # P6: uploads outlive the process
    "p6.staged-first": "What does not fill a part goes into a staging object, written before the record that names it.",
    "p6.unique-names": "Staging names carry epoch, round and task attempt and are never used twice.",
    "p6.verified": "The record carries size and checksum, the reader verifies them, a mismatch counts as missing.",
    "p6.gone": "If a staging object is gone: P2.",
    "p6.still-named": "A staging object stays while any open object refers to it.",
    # P9: completing is idempotent
    "p9.conditional": "Completion is conditional on `If-None-Match: *`.",
    "p9.recorded-etags": "Completion names the recorded ETags.",
    "p9.state-keeps": "State and snapshots hold every object named and not yet acknowledged.",
    "p9.seen-visible": "A record acknowledges only objects that were seen visible.",
    "p9.recovery-publishes": "Recovery publishes all that are not acknowledged.",
    "p9.gone-but-there": "NoSuchUpload and an object of the recorded size and checksum: done.",
    "p9.else-rebuild": "Neither upload nor object: it is lost, and rebuilt.",
    "p9.equal": "412: compare; equal: done.",
    "p9.equal-abort": "412 and equal: abort ours.",
    "p9.different": "412 and different: stop with ObjectConflict, overwrite nothing.",
    "p9.error-in-200": "A 200 that carries an error: again.",
    "p9.unusable": "A 409 that persists, InvalidPart: rebuild.",
    "p9.unusable-aborted": "An unusable upload is aborted before its object is made again.",
    # P10: no litter, and nobody else's litter
    "p10.intent": "The intent of a round is written before it opens anything.",
    "p10.intent-names": "Each intent has a key of its own, and the newest of an epoch counts.",
    "p10.after-claim": "Clean-up comes after the claim.",
    "p10.could-have-opened": "It aborts only uploads at keys that a round under way could have opened.",
    "p10.not-named": "It aborts only uploads that the current state does not name.",
    "p10.began-before": "It aborts only uploads that began before the claim (or the last recorded round).",
    "p10.lower-epochs": "It deletes staging objects of lower epochs.",
    "p10.superseded": "It deletes superseded staging objects.",
    "p10.published-first": "`published/` is written before its snapshot.",
    "p10.two-snapshots": "Records are dropped only when two snapshots cover them.",
    "p10.acknowledged": "Records are dropped only when their objects are acknowledged.",
    # ADR 5: a reset of the offsets
    "reset.claim": "A reset is a claim, so it is never dropped.",
    "reset.claims-first": "A command claims the ledger before anything else: drivers are fenced.",
    "reset.another-meanwhile": "Where another reset was carried out since its first look, it stops.",
    "reset.published-first": "What was named is made visible before the record.",
    "reset.acknowledged": "It is acknowledged before the record: no key can be pending in two generations.",
    "reset.left-to-driver": "A named object that is lost is left to a driver.",
    "reset.in-the-way": "Fail: objects that hold a record at or above the new start refuse the request.",
    "reset.looks-again": "It looks again under its claim, when nobody can change it.",
    "reset.intent": "The intent that covers the open objects is written before the record.",
    "reset.intent-settings": "The intent holds the settings that the open objects were begun under.",
    "reset.record-first": "What was open is aborted and deleted after the record.",
    "reset.ended": "The record says where the generation before ended: what was open in it is in no object.",
    "reset.once": "Each nonce is carried out once: the same request again is only finished.",
    "reset.in-all-claims": "A request is looked for in all claims, also when others came after it.",
    "reset.same-request": "The nonce of one with another request is refused.",
    "reset.marked": "Commits carry their generation.",
    "reset.readers": "Readers go by the group's offset only in the generation that committed it, and those before.",
    # ADR 5: discard-open
    "discard.goes-back": "A topic-partition with open objects goes back to the first offset that is in no object.",
    "discard.scope-object": "Where others were closed behind it, the open ones stay as they were cut, without bytes.",
}


class Rules:
    """Which sentences hold."""

    def __init__(self, without: Collection[str] = ()) -> None:
        unknown = set(without) - SENTENCES.keys()
        if unknown:
            raise ValueError(f"no such sentence: {', '.join(sorted(unknown))}")
        self.without = frozenset(without)

    def say(self, sentence: str) -> bool:
        return sentence not in self.without
