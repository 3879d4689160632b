"""What every section of a manifest has in common: camelCase outside, snake_case inside, no unknown fields."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict


class Section(BaseModel):
    """A part of a manifest. Immutable; built by `load_sink`, or in code by the snake_case names of its fields.

    The text below a field is its description in the CRD and in docs/spec.md: what it is, what happens without it.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


def about(*, key: str | None = None, example: Any = None, **bounds: Any) -> Any:
    """A field's annotation: the connector `key` that it stands for, an example, its bounds (`ge`, `max_length`, …)."""
    extra: JsonDict = {"x-s3sink-connector-key": key} if key else {}
    return Field(examples=None if example is None else [example], json_schema_extra=extra, **bounds)
