"""What a conversion reports, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class Severity(IntEnum):
    """How a finding changes the exit code."""

    LEFT_OUT = 1
    """The setting has no effect on objects."""
    TO_DO = 2
    """The manifest needs something before its start; the objects are the same."""
    DIFFERENT = 8
    """Something means something else, or is left out."""
    IMPOSSIBLE = 9
    """The connector cannot be converted."""


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """One thing to know. `setting` is the key with its value, or without it if it may be a secret; `effect` what
    happens instead, `action` what to do. All are free of secrets."""

    severity: Severity
    setting: str
    effect: str
    action: str = ""

    def __str__(self) -> str:
        action = f"; {self.action}" if self.action else ""
        return f"{self.setting}: {self.effect}{action}"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of one connector. `name` is None if the input has none.

    `namespace` and `state` (Running, Paused, Stopped) are those of a custom resource or of a running worker. `managed`
    is the service that runs the connector; its consumer groups have names of their own. `remarks` are lines about the
    running connector: failed tasks, offsets. `worker` are settings that the input has about the worker.
    """

    settings: Mapping[str, str]
    name: str | None = None
    namespace: str | None = None
    state: str = "Running"
    managed: str | None = None
    remarks: tuple[str, ...] = ()
    worker: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of the conversion of one connector. `lines` is the manifest, empty if there is none."""

    connector: str
    sink: str
    lines: tuple[str, ...]
    findings: tuple[KeyFinding, ...]

    @property
    def exit_code(self) -> int:
        """0, 8 or 9."""
        found = {each.severity for each in self.findings}
        return int(max(found & {Severity.DIFFERENT, Severity.IMPOSSIBLE}, default=0))

    @property
    def manifest(self) -> str:
        """The manifest as text."""
        return "".join(f"{line}\n" for line in self.lines)
