"""Rules for `spec.errors.onNullValue: Write`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import OnNullValue, SchemaCompatibility, SchemaInference
from sink_job.api.field_errors import FieldError, Path, shown

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_ON_NULL: Final[Path] = ("spec", "errors", "onNullValue")
_PATH: Final[Path] = ("spec", "errors", "tombstonePath")
_ENVELOPE: Final[Path] = ("spec", "format", "envelope")
_OUTPUT: Final[Path] = ("spec", "format", "output")
_KEY_CONVERTER: Final[Path] = ("spec", "format", "keyConverter")
_COMPATIBILITY: Final[Path] = ("spec", "schemaCompatibility")
_DELIMITER: Final[Path] = ("spec", "s3", "directoryDelimiter")


def check_null_values(spec: Spec) -> Iterator[FieldError]:
    """The errors of a sink that writes records without a value."""
    writes = spec.errors.on_null_value is OnNullValue.WRITE
    path, delimiter = spec.errors.tombstone_path, spec.s3.directory_delimiter
    if writes and not spec.format.envelope:
        message = (
            "Write needs spec.format.envelope: true: a record without a value has only its key, headers and origin to "
            "write; set that, or use Ignore or Fail"
        )
        yield FieldError(_ON_NULL, message, (_ENVELOPE,))
    elif writes:
        yield from _keys_with_schemas(spec)
    if path is not None and not writes:
        message = f"{shown(_PATH, path)} has no effect without spec.errors.onNullValue: Write: set that, or remove it"
        yield FieldError(_PATH, message, (_ON_NULL,))
    elif path is not None and delimiter != "/" and (path.startswith(delimiter) or path.endswith(delimiter)):
        message = f"{shown(_PATH, path)} starts or ends with spec.s3.directoryDelimiter: remove it there"
        yield FieldError(_PATH, message, (_DELIMITER,))


def _keys_with_schemas(spec: Spec) -> Iterator[FieldError]:
    """A record without a value takes the schema of another record only where keys have none."""
    key_converter, output = spec.format.key_converter, spec.format.output
    if key_converter is None or not key_converter.has_schemas or not output.has_datums:
        return
    if spec.schema_compatibility is SchemaCompatibility.NONE:
        has_one = spec.format.bare_value_schema is not None or spec.format.inference is SchemaInference.ONCE
        other = "" if has_one else "Separate, or "
        message = (
            f"None cannot be used with errors.onNullValue: Write, keyConverter {key_converter} and the output "
            f"{output}: each record without a value would close the open objects; use {other}keyConverter Bytes"
        )
        yield FieldError(_COMPATIBILITY, message, (_ON_NULL, _OUTPUT, _KEY_CONVERTER))
