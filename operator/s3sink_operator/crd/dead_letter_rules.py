"""The CEL rules of `spec.errors.deadLetters`, as `sink_job.api.rules.dead_letter_rules` has them."""

from __future__ import annotations

from collections.abc import Iterator

from s3sink_operator.crd.cel import CelRule, cel_list, either
from sink_job.api.enums import OnNullValue, Tolerance
from sink_job.api.field_types import RESERVED


def dead_letter_rules() -> Iterator[CelRule]:
    """The rules of dead-letter objects and of their topic."""
    yield from _topic_rules()
    yield from _null_rules()
    here, absent = "spec.errors.deadLetters.prefix", "!has(self.errors.deadLetters.prefix)"
    prefix, folder, delimiter = "self.errors.deadLetters.prefix", "self.s3.topicsDir", "self.s3.directoryDelimiter"
    yield CelRule(
        here,
        f"self.split('/').all(element, !(element in {cel_list(['', '.', '..', RESERVED])}))",
        f"{here} has an element that is empty, . or .., or {RESERVED}, which is reserved for ledgers: remove it",
    )
    yield CelRule(
        "spec",
        either(absent, f"self.errors.tolerance == '{Tolerance.ALL}'"),
        f"{here} has no effect without spec.errors.tolerance: All: set that, or remove the prefix",
    )
    yield CelRule(
        "spec",
        either(
            absent,
            f"{delimiter} == '/'",
            f"!{prefix}.startsWith({delimiter}) && !{prefix}.endsWith({delimiter})",
        ),
        f"{here} begins or ends with spec.s3.directoryDelimiter: remove it",
    )
    inside = " && ".join(
        f"!{one}.startsWith({other} + {end})"
        for one, other in ((prefix, folder), (folder, prefix))
        for end in ("'/'", delimiter)
    )
    yield CelRule(
        "spec",
        either(absent, f"{folder} == ''", f"{prefix} != {folder} && {inside}"),
        f"{here} and spec.s3.topicsDir must not contain each other: use a directory of its own",
    )
    yield _outside_ledger(here, absent, prefix)
    first = f"{prefix}.split({delimiter})[0].split('/')[0]"
    yield CelRule(
        "spec",
        either(absent, f"{folder} != ''", "!has(self.kafka.topics)", f"!({first} in self.kafka.topics)"),
        f"{here} begins with a topic, below which are its objects: use another directory",
    )


def _null_rules() -> Iterator[CelRule]:
    section = "spec.errors.deadLetters"
    yield CelRule(
        section,
        either("!self.nullValues", "has(self.topic)", "has(self.prefix)"),
        f"{section}.nullValues has no effect without {section}.topic or prefix: set one, or remove nullValues",
    )
    yield CelRule(
        "spec.errors",
        either("!self.deadLetters.nullValues", f"self.onNullValue == '{OnNullValue.IGNORE}'"),
        f"{section}.nullValues has no effect without spec.errors.onNullValue: Ignore: set that, or remove nullValues",
    )


def _topic_rules() -> Iterator[CelRule]:
    """The rules of the topic. Whether a pattern matches it is not one: CEL has other regular expressions than Java."""
    section = "spec.errors.deadLetters"
    here, absent = f"{section}.topic", "!has(self.errors.deadLetters.topic)"
    yield CelRule(
        "spec",
        either(absent, f"self.errors.tolerance == '{Tolerance.ALL}'"),
        f"{here} has no effect without spec.errors.tolerance: All: set that, or remove the topic",
    )
    yield CelRule(
        "spec",
        either(absent, "!has(self.kafka.topics)", "!(self.errors.deadLetters.topic in self.kafka.topics)"),
        f"{here} is also in spec.kafka.topics: the sink would read its own dead letters: use another topic",
    )
    yield CelRule(
        section,
        either("has(self.topic)", "self.headers"),
        f"{section}.headers has no effect without {here}: set that, or remove headers",
    )


def _outside_ledger(here: str, absent: str, prefix: str) -> CelRule:
    ledger = "self.s3.ledger"
    return CelRule(
        "spec",
        either(
            absent,
            f"!has({ledger})",
            f"!has({ledger}.prefix)",
            f"{ledger}.bucket != self.s3.bucket",
            f"!({prefix} + '/').startsWith({ledger}.prefix + '/') "
            f"&& !({ledger}.prefix + '/').startsWith({prefix} + '/')",
        ),
        f"{here} and spec.s3.ledger.prefix must not contain each other in one bucket: use another prefix or bucket",
    )
