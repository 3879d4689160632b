"""What this version can do of what a manifest can ask. The rest is refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sink_job.api.choices import (
    Compression,
    Converter,
    OnNullValue,
    Output,
    SchemaCompatibility,
    SchemaNamePosition,
)
from sink_job.api.mistakes import Mistake, Path

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

CONVERTERS: Final = (Converter.JSON, Converter.TEXT, Converter.BYTES)
OUTPUTS: Final = (Output.JSON, Output.BYTES)
COMPRESSIONS: Final = (Compression.NONE, Compression.GZIP)
NULL_POLICIES: Final = (OnNullValue.FAIL, OnNullValue.IGNORE)
SCHEMA_COMPATIBILITIES: Final = (SchemaCompatibility.NONE,)
SCHEMA_NAME_POSITIONS: Final = (SchemaNamePosition.NONE,)


def unbuilt(spec: Spec) -> Iterator[Mistake]:
    """A mistake for every setting of `spec` that this version cannot do yet."""
    form = spec.format
    yield from _choice(("spec", "format", "converter"), form.converter, CONVERTERS)
    yield from _choice(("spec", "format", "output"), form.output, OUTPUTS)
    yield from _choice(("spec", "format", "compression"), form.compression, COMPRESSIONS)
    yield from _choice(("spec", "partitioner", "schemaName"), spec.partitioner.schema_name, SCHEMA_NAME_POSITIONS)
    yield from _choice(("spec", "schemaCompatibility"), spec.schema_compatibility, SCHEMA_COMPATIBILITIES)
    yield from _choice(("spec", "errors", "onNullValue"), spec.errors.on_null_value, NULL_POLICIES)
    if form.key_converter is not None:
        yield _later(("spec", "format", "keyConverter"), form.key_converter, "leave it out, keys are not read yet")
    if form.envelope:
        yield _later(("spec", "format", "envelope"), "true", "leave it out")
    if spec.errors.dead_letter_topic is not None:
        said = "leave it out, tolerance: All drops such records with a count"
        yield _later(("spec", "errors", "deadLetterTopic"), spec.errors.dead_letter_topic, said)


def _choice(path: Path, value: StrEnum, built: Collection[StrEnum]) -> Iterator[Mistake]:
    if value not in built:
        one_of = "only one is" if len(built) == 1 else "these are"
        yield _later(path, value, f"{one_of}: {', '.join(built)}")


def _later(path: Path, value: str, instead: str) -> Mistake:
    return Mistake(path, f"{value} is not built yet; {instead}", (path,))
