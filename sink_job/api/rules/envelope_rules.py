"""Rules for `spec.format.envelope` in combination with other fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.field_errors import FieldError

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_HERE: Final = ("spec", "format", "envelope")
_OUTPUT: Final = ("spec", "format", "output")
_KEY_CONVERTER: Final = ("spec", "format", "keyConverter")
_TYPED: Final = (ConverterType.TEXT, ConverterType.BYTES)
"""Converters without schemas whose keys have one type."""


def check_envelope(spec: Spec) -> Iterator[FieldError]:
    """The errors of a sink with an envelope."""
    if spec.format.envelope:
        yield from _output(spec)
        yield from _keys(spec)


def _output(spec: Spec) -> Iterator[FieldError]:
    if spec.format.output is OutputFormat.BYTES:
        message = "true cannot be used with the output Bytes: remove it, or use the output Json, Avro or Parquet"
        yield FieldError(_HERE, message, (_OUTPUT,))


def _keys(spec: Spec) -> Iterator[FieldError]:
    """Keys in objects that contain the schema of their records."""
    output, converter = spec.format.output, spec.format.key_converter
    if not output.has_datums or converter is None:
        return
    if not converter.has_schemas and converter not in _TYPED:
        message = (
            f"{converter} cannot be used with an envelope and the output {output}: its keys have no schema; use Text, "
            "or Bytes, or a converter with schemas, or the output Json"
        )
        yield FieldError(_KEY_CONVERTER, message, (_HERE, _OUTPUT))
    elif converter.has_schemas and spec.schema_compatibility.projects:
        message = (
            f"{spec.schema_compatibility} cannot be used with an envelope, keyConverter {converter} and the output "
            f"{output}: schemas of keys are not projected; use None or Separate, keyConverter Bytes, or the output Json"
        )
        yield FieldError(("spec", "schemaCompatibility"), message, (_HERE, _OUTPUT, _KEY_CONVERTER))
