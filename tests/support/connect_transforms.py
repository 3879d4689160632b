"""Kafka's own transforms in a JVM (`ConnectTransforms.java`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from typing import Any, Final

from devtools.jars import connect_jars, debezium_jars
from devtools.kafka import java_command

KAFKA: Final = "org.apache.kafka.connect.transforms."


@dataclass(frozen=True)
class ConnectRecord:
    """A record of Kafka: its value as text, the names of its headers, and its timestamp in milliseconds."""

    value: str | None
    topic: str = "t"
    partition: int = 0
    offset: int = 0
    timestamp: int | None = None
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConnectStep:
    """A transform of Kafka with its settings; `predicate` and its settings."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    predicate: str | None = None
    predicate_settings: Mapping[str, str] = field(default_factory=dict)
    negate: bool = False

    @property
    def kind(self) -> str:
        """The full name of the class."""
        return self.name if self.name.startswith("io.") else KAFKA + self.name

    def request(self) -> dict[str, Any]:
        predicate = None if self.predicate is None else f"{KAFKA}predicates.{self.predicate}"
        return {
            "class": self.kind,
            "config": dict(self.settings),
            "predicate": predicate,
            "predicateConfig": dict(self.predicate_settings),
            "negate": self.negate,
        }


class ConnectTransforms:
    """A JVM that applies transforms as a worker does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def apply(
        self, steps: Sequence[ConnectStep], records: Sequence[ConnectRecord], *, schemas: bool = False
    ) -> list[dict[str, Any]]:
        """For each record `value` (text or None), `filtered`, or `error`. `schemas`: values are envelopes of
        JsonConverter."""
        request = {
            "schemas": schemas,
            "transforms": [each.request() for each in steps],
            "records": [vars(each) for each in records],
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        found: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return found


@contextmanager
def connect_transforms() -> Iterator[ConnectTransforms]:
    """Starts the JVM, and ends it."""
    options = ["-Xmx256m", "-XX:TieredStopAtLevel=1"]
    with as_file(files("tests.support") / "ConnectTransforms.java") as source:
        command = java_command(str(source), options=options, more=[*connect_jars(), *debezium_jars()])
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        try:
            yield ConnectTransforms(process)
        finally:
            process.kill()
            process.wait()
            for each in (process.stdin, process.stdout):
                if each is not None:
                    each.close()
