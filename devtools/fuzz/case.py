"""A batch of values for a converter, as plain data: its `repr` is the source text that repeats it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """The values of a batch and the settings of its converter. `converter`, `layout`, `decimals` and `timestamps` are
    values of the enums of the same names.

    `rows`: the values, None for a tombstone. `schemas`: the texts of the registry's schemas; the first has the id 1.
    `fields`: the fields to extract. An empty `layout` is that of bare values, which have the first schema,
    and in it the Protobuf message `message`.
    """

    converter: str
    rows: tuple[bytes | None, ...]
    schemas: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    layout: str = "Confluent"
    decimals: str = "Base64"
    timestamps: str = "Number"
    message: str | None = None
