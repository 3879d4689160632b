"""The names in the paths of a connector: of months, days, halves of a day and time zones.

The connector's locale is `new Locale(text)`: the whole text is a language, in lower case. `en-US` and `de_DE` are
languages that Java does not have, and their names are those of its root locale, which are the short English ones in
each width. A language that Java has need not have the names here that it has there: the tests
compare them with those of Java 17.
"""

from __future__ import annotations

import re
from typing import Final

from sink_job.api.units.date_pattern import pattern_elements

_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}")
_LONG_NAMES: Final = re.compile(r"'[^']*'|M{4,}|E{4,}")
_RENAMED: Final = {"iw": "he", "ji": "yi", "in": "id"}
"""Former codes of languages, which Java takes as the present ones."""

SAME_NAMES: Final = frozenset(
    ["de", "en", "fr", "hu", "id", "it", "lt", "pl", "pt", "ro", "ru", "sv", "tr", "uk", "vi", "zh"]
)
"""Languages whose names of months, days and halves of a day are those of Java 17."""


def is_root(text: str) -> bool:
    """Whether the connector's locale is one without names of its own: no language, or one that is not known."""
    if not _LANGUAGE.fullmatch(text):
        return True
    language = _RENAMED.get(text.lower(), text.lower())
    if language in SAME_NAMES:
        return False
    from babel.localedata import exists

    return not exists(language)


def with_root_names(pattern: str) -> str:
    """The pattern whose English names are those that `pattern` has in the root locale."""

    def short(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith("'") else match[0][:3]

    return _LONG_NAMES.sub(short, pattern)


def named_fields(pattern: str) -> list[str]:
    """The fields of a pattern that depend on the locale. Empty for a pattern that is not valid."""
    try:
        found = [each.text for each in pattern_elements(pattern) if not each.literal]
    except ValueError:
        return []
    return [each for each in found if each[0] in "aEz" or (each[0] == "M" and len(each) > 2)]


def is_same_zone_name(field: str, timezone: str) -> bool:
    """Whether `z` is the same text, with English names."""
    return len(field) < 4 and timezone == "UTC"
