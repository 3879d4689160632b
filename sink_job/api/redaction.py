"""Redacts text by patterns: passwords in `name=value` and in JSON, HTTP authorization headers, and logins in URLs.

User names and access key ids are not secrets: hiding `kafka` would make logs unreadable. The text may be of any origin
(an API server quotes a rejected request). All repetitions in the patterns are bounded, so the time is linear in the
length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sink_job.api.rules.reserved_properties import HIDDEN

_NAME = r"""(?:passwo?r?d|credentials?|(?:secret|token)(?!s\b)|private[._-]?key)[\w.-]{0,40}"""
_QUOTED = r"""(?P<quote>\\{0,8}["'])(?:(?!(?P=quote))(?:\\.|.)){0,4096}(?P=quote)"""
_NAMED: Final = re.compile(
    rf"""(?isx) (?P<name> {_NAME} (?: \s{{0,8}}=\s{{0,8}} | \\{{0,8}}["']\s{{0,8}}:\s{{0,8}} ) )
         (?P<value> {_QUOTED} | [^\s,;&"')}}\]]{{1,4096}} )"""
)
_PROOF: Final = re.compile(
    r"""(?ix) ( \bauthorization["']?\s{0,8}[:=]\s{0,8}["']? (?:basic|bearer|digest|token)\s{1,8} ) [\w.~+/=-]{1,4096}
        | ( \bbearer\s{1,8} ) [\w.~+/=-]{16,4096}"""
)
_LOGIN: Final = re.compile(r"(://[^/\s:@]{0,200}:)[^/\s@]{1,200}(?=@)")


def redacted(text: str) -> str:
    """The text with `HIDDEN` in place of secret values."""
    text = _NAMED.sub(rf"\g<name>{HIDDEN}", text)
    return _LOGIN.sub(rf"\1{HIDDEN}", _PROOF.sub(rf"\1\2{HIDDEN}", text))


def named_secrets(text: str) -> Iterator[str]:
    """The values in the text with the name of a secret, without quotes."""
    for match in _NAMED.finditer(text):
        yield match["value"].strip("\\\"'")
