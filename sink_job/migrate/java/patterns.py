"""Regular expressions of Java that are not those of this sink, which has Python's.

For names of topics, which are ASCII without blanks, most expressions match the same. What does not is rejected here:
a class within a class, `&&`, and escapes, groups and repetitions that only one of the two has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sink_job.api.field_types import check_topics_pattern

_TOKEN: Final = re.compile(r"\\.|\(\?[<A-Za-z#-][^)=!:>]?|\{[0-9]+(?:,[0-9]*)?\}|.", re.DOTALL)
_OF_JAVA: Final = re.compile(r"\\[QEGzhHRvVXpPNkec]|\(\?<[A-Za-z]")
_OF_PYTHON: Final = re.compile(r"\(\?[aLP#]")
_ERRORS_OF_PYTHON: Final = ("look-behind requires fixed-width", "global flags not at the start")
_FLAG_X: Final = re.compile(r"\(\?[a-z]*x")


def check_java_pattern(text: str) -> None:
    """Checks that an expression of a connector matches the same topics here. Raises ValueError with the end of a
    sentence about it."""
    for token, in_class in _tokens(text):
        if in_class and token in ("[", "&&"):
            what = "a class within a class" if token == "[" else "&& in a class"
            raise ValueError(f"has {what}, which means something else in a regular expression of this sink")
        if _OF_JAVA.match(token):
            raise ValueError(f"has {token}, which is valid in Java, not in a regular expression of this sink")
        if not in_class and (token == "{" or _OF_PYTHON.match(token)):
            raise ValueError(f"has {token}, which is not valid in Java: the connector does not start with it")
    if _FLAG_X.search(text):
        raise ValueError("has the flag x, with which blanks mean something else in a regular expression of this sink")
    try:
        check_topics_pattern(text)
    except ValueError as error:
        if any(each in str(error) for each in _ERRORS_OF_PYTHON):
            reason = str(error).rpartition(": ")[2]
            raise ValueError(f"is valid in Java, not as a regular expression of this sink: {reason}") from None
        raise


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Escapes, starts of groups, repetitions and single characters, each with whether it is within a class."""
    in_class, start, at = False, 0, 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None, "each character is a token"
        token = text[at : at + 2] if in_class and text.startswith("&&", at) else found[0]
        if in_class and token[0] not in "\\&":
            token = token[0]
        yield token, in_class
        if in_class:
            in_class = token != "]" or at == start
        elif token == "[":
            in_class, start = True, at + (2 if text.startswith("[^", at) else 1)
        at += len(token)
