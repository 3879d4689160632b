"""Jars by their Maven coordinates and checksums."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Jar:
    """A jar by its Maven coordinates. `sha256` is in hexadecimal."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def jar_table(text: str) -> tuple[Jar, ...]:
    """The jars of a table: alternating `group:artifact:version` and `sha256`, separated by white space."""
    words = iter(text.split())
    return tuple(_jar(coordinates, sha256) for coordinates, sha256 in zip(words, words, strict=True))


def _jar(coordinates: str, sha256: str) -> Jar:
    group, artifact, version = coordinates.split(":")
    return Jar(group, artifact, version, sha256)
