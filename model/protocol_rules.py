"""The rules of promises P2, P4, P5, P6, P9, P10 and of ADR 5, 47, 50 and 52 that a model can check. Each can be
omitted.

The id of a rule is `promise.name`; the text is the wording of the promise. If a rule is omitted, the drivers of the
model act as an implementation would that does not know the rule.
"""

from __future__ import annotations

from collections.abc import Collection

PROTOCOL_RULES = {
    # P2: the ledger decides
    "p2.recorded-first": "The ledger records the result of a round before any of it becomes visible.",
    "p2.rebuilt": "A closed object whose upload is lost is rebuilt; its records are never divided again.",
    "p2.runs": "A rebuild reads the recorded members (path, offset ranges) again.",
    "p2.schemas": "With a schema, the members of an object are the records with this schema.",
    "p2.rejected": "The members of a dead-letter object are the rejected records of its source ranges.",
    "p2.unknown-left-out": "A record with an unknown schema id is in no source range of an object of accepted records.",
    "p2.unknown-rejected": "A record with an unknown schema id stays a dead letter if the id is known later.",
    "p2.skipped-left-out": "A skipped record is in no source range.",
    "p2.skipped-recorded": "The record of a round lists the records that it has skipped.",
    "p2.clocks": "A rebuild selects the members under the recorded round clocks.",
    "p2.clock-forward": "The round clock goes back only where no object is open.",
    "p2.same-key": "A rebuilt object keeps its key.",
    "p2.replacing-record": "A rebuild writes to a new upload, which a replacing record names.",
    "p2.rewrite-from": "Open objects may be written again from the first offset that is in no closed object.",
    "p2.scope-object": "With `scope: Object`, open objects are rebuilt too.",
    # P4: one writer
    "p4.conditional": "Records are numbered and written with `If-None-Match: *`.",
    "p4.claim-first": "A driver's first write is a claim: a record numbered head + 1, whose number is its epoch.",
    "p4.claims-kept": "Claims are never deleted.",
    "p4.check-higher": "After its claim a driver lists the records; a higher number makes it start over.",
    "p4.check-snapshot": "After its claim a driver lists the snapshots; an equal or higher number makes it start over.",
    "p4.check-gap": "A gap in the records makes the driver start over.",
    "p4.acts-after-check": "A driver acts only after these checks.",
    "p4.above-snapshot": "Records numbered at or below the newest snapshot are never applied.",
    "p4.checks-head": "A driver appends a record or checks the head before it commits offsets.",
    "p4.own-record": "A 412 on the driver's own attempt id (the reply was lost) is a success.",
    "p4.frozen-body": "A record's body is frozen before the first attempt, and the stored body is the state.",
    "p4.fenced-stops": "A fenced driver stops: it publishes and commits nothing more.",
    "p4.fenced-aborts-own": "A fenced driver aborts only uploads that it started and never recorded.",
    "p4.replaced-after-record": "Replaced uploads are aborted after the record: the driver may be fenced unknowingly.",
    # P5: the committed offset
    "p5.acknowledged-first": "The ledger acknowledges an object before the group's offset passes it.",
    "p5.output-only": "No decision depends on the group's offset: a lost object is rebuilt, whoever sets the offset.",
    # P6: uploads outlive the process
    "p6.staged-first": "Bytes that do not fill a part are staged before the record that names the staging object.",
    "p6.unique-names": "Staging names carry epoch, round and task attempt and are never used twice.",
    "p6.verified": "The record carries size and checksum; the reader verifies them; a mismatch counts as missing.",
    "p6.missing": "A missing staging object leads to a rebuild, as in P2.",
    "p6.still-referenced": "A staging object stays while any open object refers to it.",
    # P9: completion is idempotent
    "p9.conditional": "Completion is conditional on `If-None-Match: *`.",
    "p9.recorded-etags": "Completion names the recorded ETags.",
    "p9.state-keeps": "State and snapshots hold every closed object that is not yet acknowledged.",
    "p9.observed-visible": "A record acknowledges only objects that the driver has observed to be visible.",
    "p9.recovery-publishes": "Recovery publishes every object that is not acknowledged.",
    "p9.already-complete": "NoSuchUpload, and an object of the recorded size and checksum at the key: done.",
    "p9.rebuild": "Neither upload nor object exists: the object is lost and is rebuilt.",
    "p9.equal": "412: compare; equal: done.",
    "p9.equal-abort": "412 and equal: abort the driver's own upload.",
    "p9.different": "412 and different: stop with ObjectConflict, overwrite nothing.",
    "p9.error-in-200": "A 200 that carries an error is repeated.",
    "p9.unusable": "A 409 that persists, or InvalidPart: rebuild.",
    "p9.unusable-aborted": "An unusable upload is aborted before its object is rebuilt.",
    # P10: nothing orphaned remains, and nothing foreign is removed
    "p10.intent": "The intent of a round is written before the round opens anything.",
    "p10.intent-names": "Each intent has a key of its own, and the newest of an epoch counts.",
    "p10.after-claim": "Clean-up comes after the claim.",
    "p10.could-have-opened": "Clean-up aborts only uploads at keys that a round could have opened under an intent.",
    "p10.unreferenced": "Clean-up aborts only uploads that the current state does not name.",
    "p10.started-before": "Clean-up aborts only uploads that started before the claim (or the last recorded round).",
    "p10.lower-epochs": "Clean-up deletes staging objects of lower epochs.",
    "p10.superseded": "Clean-up deletes superseded staging objects.",
    "p10.published-first": "`published/` is written before its snapshot.",
    "p10.two-snapshots": "Records are dropped only when two snapshots cover them.",
    "p10.acknowledged": "Records are dropped only when their objects are acknowledged.",
    # ADR 5: a reset of the offsets
    "reset.claim": "A reset is a claim, so it is never dropped.",
    "reset.claims-first": "A command claims the ledger before any other effect: drivers are fenced.",
    "reset.concurrent-reset": "A command stops if another reset was carried out since its first check.",
    "reset.published-first": "Closed objects are made visible before the record.",
    "reset.acknowledged": "They are acknowledged before the record: no key can be pending in two generations.",
    "reset.left-to-driver": "A command leaves a lost closed object to a driver.",
    "reset.existing-objects": "Fail: the request is rejected if an object holds a record at or above the new start.",
    "reset.checks-again": "A command checks again under its claim, when no other writer can change the result.",
    "reset.intent": "The intent that covers the open objects is written before the record.",
    "reset.intent-settings": "The intent holds the settings under which the open objects were started.",
    "reset.record-first": "Open uploads are aborted and staging objects deleted after the record.",
    "reset.ended": "The record states where the previous generation ended: its open records are in no object.",
    "reset.once": "Each nonce is carried out once: a repeated request only finishes the first one.",
    "reset.in-all-claims": "A request is searched for in all claims, also if later requests followed it.",
    "reset.same-request": "A different request with a nonce that was used is rejected.",
    "reset.commit-metadata": "Commits carry their generation.",
    "reset.readers": "Readers follow the group's offset only in the generation that committed it and in earlier ones.",
    # ADR 47: the dead-letter topic
    "topic.before-acknowledgement": "Dead letters are in the topic before the ledger acknowledges their object.",
    "topic.one-transaction": "One transaction has the dead letters and the number of the ledger.",
    "topic.fences": "A producer fences the earlier ones of the ledger.",
    "topic.read-after-start": "A driver reads the number after the start of its producer.",
    "topic.reads-again": "A driver that was fenced by Kafka reads the number again.",
    "topic.searches": "If the number has expired, the driver searches the topic for its own dead letters.",
    "topic.not-beside-lost": "The record of a rebuild acknowledges no dead-letter object before its transaction.",
    "topic.left-to-driver": "A command leaves dead letters that may not be in the topic to a driver.",
    # ADR 50: repairs
    "repair.recorded-bytes": "A repair completes only uploads with the recorded bytes of an object.",
    "repair.condition": "A repair completes an upload on the condition that the key is as it was read.",
    "repair.kept-first": "The damaged bytes are copied before they are replaced.",
    "repair.generation": "A repair ends if an offset reset was carried out since it read the ledger.",
    # ADR 52: accepted losses
    "loss.claim": "A command claims the ledger before it records accepted losses.",
    "loss.whole-object": "An accepted loss lists all offsets of the object.",
    "loss.bucket-decides": "An object that is as recorded is visible, whatever is recorded as lost.",
    # ADR 5: discard-open
    "discard.rewinds": "A topic-partition with open objects goes back to the first offset that is in no object.",
    "discard.scope-object": "If later objects are closed, the open ones keep their records and lose their bytes.",
}
"""The text of each rule by its id."""


class Rules:
    """The rules that are in force: all but the omitted ones.

    Raises ValueError for an unknown id.
    """

    def __init__(self, without: Collection[str] = ()) -> None:
        unknown = set(without) - PROTOCOL_RULES.keys()
        if unknown:
            raise ValueError(f"unknown rule: {', '.join(sorted(unknown))}")
        self.without = frozenset(without)

    def enforce(self, rule: str) -> bool:
        """Whether the rule with this id is in force."""
        return rule not in self.without
