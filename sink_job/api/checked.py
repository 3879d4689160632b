"""Text with a rule: how a function that names what is wrong becomes a type of the spec."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


@dataclasses.dataclass(frozen=True)
class Checked:
    """Annotation: `check` raises ValueError with the rest of a sentence that begins with the value ("is empty").

    `schema` is what the JSON schema can say of it; the check itself is what counts.
    """

    check: Callable[[str], None]
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def _checked(self, text: str) -> str:
        self.check(text)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | dict(self.schema)
