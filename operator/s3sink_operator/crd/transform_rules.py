"""The CEL rules of `spec.transforms`, as `sink_job.api.rules.transform_rules` has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from s3sink_operator.crd.cel import CelRule, cel_list, cel_text, either
from sink_job.api.enums import ConverterType, OutputFormat, TransformType
from sink_job.api.rules.transform_rules import FIELDS_OF

_HERE = "spec.transforms"
_TRANSFORMED = sorted(each for each in ConverterType if each is ConverterType.JSON or each.has_schemas)
"""The converters of values that transforms can change."""


def transform_rules() -> Iterator[CelRule]:
    """The rules of transforms. One is for the fields of all types. Fields that a type does not use, and other
    combinations, are for the job's parser: the definition has a limited size."""
    needed = (
        either(f"each.type != {cel_text(kind)}", " && ".join(f"has(each.{name})" for name in required))
        for kind, (required, _) in FIELDS_OF.items()
        if required
    )
    yield _each(_all(needed), "lacks a field that its type needs: see docs/semantics.md, section 18")
    yield from _choices()
    yield from _format()


def _all(conditions: Iterable[str]) -> str:
    return " && ".join(f"({each})" for each in conditions)


def _choices() -> Iterator[CelRule]:
    yield _each(
        either(f"each.type != {cel_text(TransformType.CAST)}", "has(each.castTo) != has(each.casts)"),
        "has a transform Cast with both or none of casts and castTo: set one of them",
    )
    names = ("topic", "header", "tombstone", "field")
    yield _each(
        either("!has(each.when)", *(f"has(each.when.{name})" for name in names)),
        "has a when without a condition: set topic, header, tombstone or field",
    )


def _format() -> Iterator[CelRule]:
    filters = f"each.type == {cel_text(TransformType.FILTER)} && !(has(each.when) && has(each.when.field))"
    without = f"!has(self.transforms) || self.transforms.all(each, {filters})"
    formats = (
        f"self.format.converter in {cel_list(_TRANSFORMED)}",
        f"self.format.output != {cel_text(OutputFormat.BYTES)}",
    )
    yield CelRule(
        "spec",
        either(without, f"({_all(formats)})"),
        f"{_HERE} but Filter without field read JSON or values with a schema: use such a converter, no output Bytes",
    )


def _each(cel: str, message: str) -> CelRule:
    return CelRule(_HERE, f"self.all(each, {cel})", f"{_HERE} {message}")
