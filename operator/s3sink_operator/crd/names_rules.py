"""The CEL rules of `spec.s3.prefixes` and `topicInPath`, as `sink_job.api.rules.names_rules` has them.

Whether each topic with an entry is in `kafka.topics` is not one: comparing two long lists costs too much.
"""

from __future__ import annotations

from collections.abc import Iterator

from s3sink_operator.crd.cel import CelRule, either
from sink_job.api.field_types import OF_NO_TOPIC, RESERVED

_PLAIN = "self.topicInPath && (!has(self.prefixes) || self.prefixes.size() == 0)"


def names_rules() -> Iterator[CelRule]:
    """The rules of the directories of topics."""
    here = "spec.s3"
    yield CelRule(
        f"{here}.prefixes",
        "self.all(each, has(each.topic) != has(each.pattern))",
        f"{here}.prefixes has an entry with both or none of topic and pattern: set one of them",
    )
    yield CelRule(
        f"{here}.prefixes",
        f"self.all(each, !each.prefix.matches('(^|/)([.]{{0,2}}|{RESERVED})(/|$)'))",
        f"{here}.prefixes has a prefix with an element that is empty, . or .., or {RESERVED}, which is reserved for "
        "ledgers: remove it",
    )
    yield CelRule(
        here,
        either(
            "!has(self.prefixes)",
            "self.directoryDelimiter == '/'",
            "self.prefixes.all(each, !each.prefix.startsWith(self.directoryDelimiter) "
            "&& !each.prefix.endsWith(self.directoryDelimiter))",
        ),
        f"{here}.prefixes has a prefix that begins or ends with directoryDelimiter: remove it",
    )
    yield CelRule(
        here,
        either(_PLAIN, f"self.directoryDelimiter.matches('{OF_NO_TOPIC}')"),
        f"{here}.directoryDelimiter may be a part of a topic, so two topics could have the same key with prefixes or "
        "topicInPath: false: use one with another character, such as /",
    )
    yield CelRule(
        "spec",
        either(_PLAIN.replace("self.", "self.s3."), "self.s3.topicsDir != ''", "!has(self.errors.deadLetters.prefix)"),
        f"{here}.topicsDir is empty, so with prefixes or topicInPath: false objects could be below "
        "errors.deadLetters.prefix: set topicsDir",
    )
