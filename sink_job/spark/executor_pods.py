"""Executor pods: reads the operator's file of Spark properties that describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sink_job.api.errors import ConfigurationError
from sink_job.api.units.quantities import MI

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_MEBIBYTES = re.compile(r"(\d+)m")


@dataclass(frozen=True, kw_only=True)
class ExecutorConfig:
    """The executor pods: `instances` executors, each with `cores` concurrent tasks and `memory` bytes for all of its
    processes. `properties` are Spark's."""

    properties: Mapping[str, str]
    instances: int
    cores: int
    memory: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ExecutorConfig:
        """The executors of these properties. Raises ConfigurationError if the number or the size is missing or
        invalid."""
        return cls(
            properties=properties,
            instances=_whole(properties, "spark.executor.instances"),
            cores=_whole(properties, "spark.executor.cores"),
            memory=_mebibytes(properties, "spark.executor.memory")
            + _mebibytes(properties, "spark.executor.memoryOverhead"),
        )

    @property
    def slots(self) -> int:
        """The number of concurrent tasks of all executors."""
        return self.instances * self.cores


def read_executor_config(path: Path, environ: Mapping[str, str]) -> ExecutorConfig:
    """The executors of the properties file `path`. `${NAME}` in a value is replaced by an environment variable.

    Raises ConfigurationError for an unreadable file, an invalid line, and a variable that is not set.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigurationError(f"--spark-properties {path}: {error.strerror}") from None
    return ExecutorConfig.of({name: _filled(name, value, environ) for name, value in parse_properties(text)})


def parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Names and values of a Java properties file with one `name=value` per line and backslash escapes.

    Raises ConfigurationError for any other line.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigurationError(f"--spark-properties: line {number} is not NAME=VALUE")
        yield name.strip(), re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), value.lstrip(" "))


def _filled(name: str, value: str, environ: Mapping[str, str]) -> str:
    def of(match: re.Match[str]) -> str:
        if not environ.get(match[1]):
            raise ConfigurationError(f"--spark-properties: {name} needs the environment variable {match[1]}: set it")
        return environ[match[1]]

    return _VARIABLE.sub(of, value)


def _whole(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name, "")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ConfigurationError(f"--spark-properties: {name} must be an integer greater than 0, not {text!r}")
    return int(text)


def _mebibytes(properties: Mapping[str, str], name: str) -> int:
    match = _MEBIBYTES.fullmatch(properties.get(name, ""))
    if match is None:
        raise ConfigurationError(f"--spark-properties: {name} must be a size such as 1024m")
    return int(match[1]) * MI
