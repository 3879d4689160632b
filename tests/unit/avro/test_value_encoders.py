"""What a traceback shows of a compiled encoder."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.avro.encoder import datum_encoder
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Default, Field, Schema, SchemaType
from sink_job.connect.scopes import shown

NUMBER = Schema(SchemaType.INT32)
TEXT = Schema(SchemaType.STRING, optional=True)
INNER = Schema(SchemaType.STRUCT, "example.Inner", fields=(Field("n", NUMBER), Field("s", TEXT)))
OUTER = Schema(
    SchemaType.STRUCT,
    "example.Outer",
    fields=(Field("inners", Schema(SchemaType.ARRAY, values=INNER)), Field("last", INNER)),
)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (NUMBER, "required int32"),
        (TEXT, "optional encode_string"),
        (Schema(SchemaType.INT32, default=Default("1")), "defaulted int32"),
        (OUTER, "required record example.Outer(inners, last)"),
        (OUTER.fields[0].schema, "required array of required record example.Inner(n, s)"),
        (
            Schema(SchemaType.MAP, keys=NUMBER, values=TEXT),
            "required map of required int32 to optional encode_string",
        ),
    ],
)
def test_the_repr_names_the_type(schema: Schema, text: str) -> None:
    assert shown(datum_encoder(schema, DatumSettings())) == text


@pytest.mark.parametrize(
    ("value", "notes"),
    [
        (
            {"inners": [{"n": 1}, {"n": "2"}]},
            [
                "in the field 'n' of record example.Inner(n, s)",
                "in the field 'inners' of record example.Outer(inners, last)",
            ],
        ),
        ({"inners": 5}, ["in the field 'inners' of record example.Outer(inners, last)"]),
    ],
)
def test_an_unexpected_error_names_its_field(value: Any, notes: list[str]) -> None:
    with pytest.raises(TypeError) as caught:
        datum_encoder(OUTER, DatumSettings())(value)
    assert caught.value.__notes__ == notes
