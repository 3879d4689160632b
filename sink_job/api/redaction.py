"""Takes out of a text what its own words say is secret: passwords in `name=value`, and what an HTTP header proves.

User names and access key ids are no secrets: hiding `kafka` would leave unreadable logs.
"""

from __future__ import annotations

import re
from typing import Final

from sink_job.api.properties import HIDDEN

NAMED: Final = re.compile(
    r"""(?ix) (\b [\w.-]* (?:password|passwd|secret|token|credential)s? [\w.]* \s* = \s*)
        ( "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | [^\s,;&"')}\]]+ )"""
)
"""A name that says that it is a secret, with `=`, and its value."""
_PROOF: Final = re.compile(r"""(?i)(\bbearer|\bauthorization["']?\s*[:=]\s*["']?\w+)\s+[\w.~+/=-]{16,}""")


def redacted(text: str) -> str:
    """The text with `HIDDEN` in the place of such values."""
    return _PROOF.sub(rf"\1 {HIDDEN}", NAMED.sub(rf"\1{HIDDEN}", text))
