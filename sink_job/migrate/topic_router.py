"""A connector whose only transform is Kafka's RegexRouter: its names of topics become directories.

The router changes the topic of a record, which the connector then has in the directory and in the name of an object.
Here `s3.prefixes` and `s3.topicInPath: false` make the same directories; the name of the object keeps Kafka's topic.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sink_job.api.field_types import OF_NO_TOPIC, check_key_prefix
from sink_job.migrate.draft import Draft
from sink_job.migrate.java.patterns import check_java_pattern
from sink_job.migrate.manifest import Item
from sink_job.migrate.values import parse_list

_ROUTER: Final = "org.apache.kafka.connect.transforms.RegexRouter"
_MAX_PREFIXES: Final = 100
ONLY_JAVA: Final = re.compile(r"&&|\[[^\]]*\[|\\[QEGZzhvRXpP]|\$\{|\\[^.$\-_+/\\dDwWsS]")
"""What Python reads in another way, or not at all, in a regular expression or a replacement. Some of it is harmless in
one of the two: such a router is converted by hand."""
_EVERYTHING: Final = (".*", ".+", "(.*)", "(.+)")


def router_of(draft: Draft) -> str | None:
    """The name of the connector's only transform, if it is a router without a predicate."""
    names = parse_list(draft.settings.get("transforms", ""))
    if len(names) != 1:
        return None
    at = f"transforms.{names[0]}"
    is_router = draft.settings.get(f"{at}.type", "").strip() == _ROUTER
    return names[0] if is_router and f"{at}.predicate" not in draft.settings else None


def convert_router(draft: Draft) -> None:
    """Sets `s3.prefixes` and `s3.topicInPath`, or reports why they cannot have the router's directories."""
    name = router_of(draft)
    if name is None:
        return
    at = f"transforms.{name}"
    for key in ("transforms", f"{at}.type", f"{at}.regex", f"{at}.replacement"):
        draft.text(key)
    try:
        entries = _entries(draft, draft.settings.get(f"{at}.regex", ""), draft.settings.get(f"{at}.replacement", ""))
    except ValueError as error:
        action = "write s3.prefixes by hand, and remove the transform from the configuration to convert the rest"
        draft.impossible("transforms", f"RegexRouter {error}", action)
        return
    if not entries:
        draft.left_out("transforms", "RegexRouter changes no topic of this connector")
        return
    draft.put("s3.prefixes", [Item(each) for each in entries], f"{at}.regex, {at}.replacement")
    draft.put("s3.topicInPath", False, "the prefixes are in the place of topics")
    effect = "objects are in the directories of the router, but their names begin with the topic in Kafka"
    draft.different("transforms", effect, "check that readers do not use the names of objects")


def _entries(draft: Draft, regex: str, replacement: str) -> list[dict[str, Any]]:
    """The entries of `s3.prefixes`; none if no topic is changed. Raises ValueError with the end of a sentence about the
    router."""
    delimiter = draft.fields["s3.directoryDelimiter"].value if "s3.directoryDelimiter" in draft.fields else "/"
    if re.search(OF_NO_TOPIC, str(delimiter)) is None:
        raise ValueError("cannot be replaced beside a directory.delim that may be a part of a topic")
    for text in (regex, replacement):
        if ONLY_JAVA.search(text):
            raise ValueError("has an expression that is not converted")
    try:
        check_java_pattern(regex)
    except ValueError as error:
        raise ValueError(f"has a regex that {error}") from None
    topics = draft.fields.get("kafka.topics")
    if topics is None:
        return _by_pattern(draft, regex, replacement)
    names = [str(each.value if isinstance(each, Item) else each) for each in topics.value]
    routed = {name: _routed(regex, replacement, name) for name in names}
    if all(name == other for name, other in routed.items()):
        return []
    if len(routed) > _MAX_PREFIXES:
        raise ValueError(f"has {len(routed):,} topics; s3.prefixes has at most {_MAX_PREFIXES} entries")
    return [{"topic": name, "prefix": _checked(other)} for name, other in routed.items()]


def _by_pattern(draft: Draft, regex: str, replacement: str) -> list[dict[str, Any]]:
    """One directory for all topics that the connector's pattern matches."""
    pattern = draft.fields.get("kafka.topicsPattern")
    if pattern is None or regex not in (*_EVERYTHING, pattern.value) or re.search(r"[$\\]", replacement):
        raise ValueError("makes directories of parts of topics, which topics.regex does not list")
    return [{"pattern": str(pattern.value), "prefix": _checked(replacement)}]


def _routed(regex: str, replacement: str, topic: str) -> str:
    """The topic as the router has it: it replaces the first match if the whole topic matches."""
    if re.fullmatch(regex, topic) is None:
        return topic
    found = re.search(regex, topic)
    assert found is not None, "the whole topic matches"
    groups = re.compile(regex).groups

    def expanded(reference: re.Match[str]) -> str:
        if reference[0].startswith("\\"):
            return reference[0][1]
        number = int(reference[1])
        if number > groups or len(reference[1]) > 1:
            raise ValueError(f"has a replacement with {reference[0]}, which is not converted")
        return found[number] or ""

    return topic[: found.start()] + re.sub(r"\$([0-9]+)|\\.", expanded, replacement) + topic[found.end() :]


def _checked(prefix: str) -> str:
    try:
        check_key_prefix(prefix)
    except ValueError as error:
        raise ValueError(f"makes the topic {prefix or '(empty)'}, which {error}") from None
    return prefix
