"""The allocation of a running sink: how many executors it has, and the memory of each.

The operator writes it to a file that the driver reads between two rounds. Everything else that a driver is started with
stays the same until its end.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_MAX_BYTES = 2**63 - 1


class Allocation(BaseModel):
    """`memory`: bytes of each executor, or of all processes in Local mode. `executors`: 1 in Local mode. `bounds`: the
    settings of the memory that it was computed with. `by_defaults`: the memory changed while the driver runs, because
    changed defaults of the operator changed these settings. Only the operator reads both."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    executors: Annotated[int, Field(ge=1, le=10_000)]
    memory: Annotated[int, Field(ge=1, le=_MAX_BYTES)]
    bounds: str = ""
    by_defaults: bool = False

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The allocation of a JSON text; None for any other text."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def text(self) -> str:
        """The JSON of this allocation."""
        return self.model_dump_json(exclude=None if self.by_defaults else {"by_defaults"})
