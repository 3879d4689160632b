"""The CEL rules of `spec.errors.onNullValue: Write`, as `sink_job.api.rules.null_value_rules` has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from s3sink_operator.crd.cel import CelRule, cel_list, either
from sink_job.api.enums import ConverterType, OnNullValue, OutputFormat, SchemaCompatibility
from sink_job.api.field_types import RESERVED

_WITH_SCHEMAS: Final = sorted(each for each in ConverterType if each.has_schemas)
_WITH_DATUMS: Final = sorted(each for each in OutputFormat if each.has_datums)


def null_value_rules() -> Iterator[CelRule]:
    """The rules of records without a value that are written."""
    here, path = "spec.errors.onNullValue", "spec.errors.tombstonePath"
    written, absent = f"self.errors.onNullValue == '{OnNullValue.WRITE}'", "!has(self.errors.tombstonePath)"
    yield CelRule(
        "spec",
        f"!({written}) || self.format.envelope",
        f"{here}: Write needs spec.format.envelope: true: set that, or use Ignore or Fail",
    )
    yield CelRule(
        "spec",
        either(
            f"!({written})",
            "!self.format.envelope",
            f"!(self.format.output in {cel_list(_WITH_DATUMS)})",
            "!has(self.format.keyConverter)",
            f"!(self.format.keyConverter in {cel_list(_WITH_SCHEMAS)})",
            f"self.schemaCompatibility != '{SchemaCompatibility.NONE}'",
        ),
        f"spec.schemaCompatibility: None cannot be used with {here}: Write, the outputs {' and '.join(_WITH_DATUMS)} "
        "and keys with schemas: use Separate, or keyConverter Bytes",
    )
    yield CelRule(
        "spec.errors",
        either("!has(self.tombstonePath)", f"self.onNullValue == '{OnNullValue.WRITE}'"),
        f"{path} has no effect without {here}: Write: set that, or remove the path",
    )
    yield CelRule(
        path,
        f"self.split('/').all(element, !(element in {cel_list(['', '.', '..', RESERVED])}))",
        f"{path} has an element that is empty, . or .., or {RESERVED}, which is reserved for ledgers: remove it",
    )
    ends = " && ".join(
        f"!self.errors.tombstonePath.{end}(self.s3.directoryDelimiter)" for end in ("startsWith", "endsWith")
    )
    yield CelRule(
        "spec",
        either(absent, "self.s3.directoryDelimiter == '/'", ends),
        f"{path} begins or ends with spec.s3.directoryDelimiter: remove it",
    )
