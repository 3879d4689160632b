"""The manifest and the findings of a conversion while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from sink_job.api.field_errors import in_a_line
from sink_job.migrate.findings import KeyFinding, Severity
from sink_job.migrate.manifest import Line
from sink_job.migrate.table import KeyOwner, key_table
from sink_job.migrate.values import PLACEHOLDER, parse_number, shown

T = TypeVar("T")

BY_HAND: Final = "replace-me"
"""In place of a value that the configuration does not have."""


class Draft:
    """The settings of a connector, the fields made of them, and the findings."""

    def __init__(self, settings: Mapping[str, str], worker: Mapping[str, str]) -> None:
        self.settings: Final = settings
        self.worker: Final = worker
        self.fields: Final[dict[str, Line]] = {}
        self.findings: Final[list[KeyFinding]] = []
        self._handled: set[str] = set()

    def text(self, key: str) -> str | None:
        """The value of a key without blanks around it, which is then handled; None without one."""
        self._handled.add(key)
        value = self.settings.get(key)
        return None if value is None else value.strip()

    def raw(self, key: str) -> str | None:
        """The value of a key as it is, which is then handled."""
        self._handled.add(key)
        return self.settings.get(key)

    def is_handled(self, key: str) -> bool:
        return key in self._handled

    def put(self, path: str, value: Any, comment: str) -> None:
        """Sets a field of the manifest. `comment` names the key."""
        self.fields[path] = Line(value, comment)

    def parsed(self, key: str, parse: Callable[[str], T]) -> T | None:
        """The parsed value of a key; None without one, or with a finding if it is not valid."""
        value = self.text(key)
        if value is None:
            return None
        if PLACEHOLDER.search(value):
            self.different(key, "a configuration provider of the worker has the value", "write it into the manifest")
            return None
        try:
            return parse(value)
        except ValueError as error:
            self.different(key, f"{error}; it is left out", "correct the value, and convert again")
            return None

    def number(self, key: str) -> int | None:
        return self.parsed(key, parse_number)

    def left_out(self, key: str, why: str) -> None:
        """Reports a setting without effect."""
        self._report(Severity.LEFT_OUT, key, why)

    def different(self, key: str, effect: str, action: str = "") -> None:
        """Reports a setting that means something else here."""
        self._report(Severity.DIFFERENT, key, effect, action)

    def impossible(self, key: str, why: str, action: str = "") -> None:
        """Reports a reason not to convert."""
        self._report(Severity.IMPOSSIBLE, key, why, action)

    def missing(self, key: str, effect: str, action: str = "") -> None:
        """Reports a key that the configuration lacks."""
        self.findings.append(KeyFinding(Severity.DIFFERENT, f"{key} is missing", effect, action))

    def to_do(self, what: str, action: str) -> None:
        """Reports what the manifest needs before its start."""
        self.findings.append(KeyFinding(Severity.TO_DO, what, "", action))

    def _report(self, severity: Severity, key: str, effect: str, action: str = "") -> None:
        self._handled.add(key)
        self.findings.append(KeyFinding(severity, self.setting(key), effect, action))

    def setting(self, key: str) -> str:
        """`key=value` of the configuration, without a value that may be a secret."""
        value = self.settings.get(key)
        if value is None:
            return key
        return in_a_line(key) if _hides(key) else shown(key, value)


def _hides(key: str) -> bool:
    """True for a key whose value is not printed: a secret, an unknown key, or one of a class of the user's own."""
    name, owners = key, [KeyOwner.CONNECTOR]
    if key.startswith("value.converter."):
        name, owners = (
            key.removeprefix("value.converter."),
            [each for each in KeyOwner if each is not KeyOwner.CONNECTOR],
        )
    rows = [row for owner in owners if (row := key_table().row(name, owner)) is not None]
    return not rows or any(row.is_secret or row.key.endswith("*") for row in rows)
