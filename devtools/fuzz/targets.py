"""The converters that are fuzzed: where their values come from, and what their results must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final
from uuid import UUID

from devtools.fuzz.avro import avro_case
from devtools.fuzz.binary_items import cbor_case, message_pack_case
from devtools.fuzz.case import Case
from devtools.fuzz.json_texts import bytes_case, json_case, json_envelope_case, json_schema_case, text_case
from devtools.fuzz.protobuf import protobuf_case
from sink_job.api.enums import ConverterType, DecimalFormat, OutputFormat, TimestampFormat
from sink_job.codecs.converters import converter_for
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.json_encoder import JsonOptions
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import ValueConverter
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat


@dataclass(frozen=True)
class Target:
    """A converter.

    `case` draws a batch. `language` is that of its schemas in a registry; None if it needs no registry. `wire_format`
    is that of its values. `is_json`: its texts for the output Json are JSON texts. `keeps_values`: they have the same
    content as the values."""

    case: Callable[[Random], Case]
    language: str | None = None
    wire_format: Callable[[Layout], WireFormat] = WireFormat
    is_json: bool = True
    keeps_values: bool = False


TARGETS: Final[dict[str, Target]] = {
    "Avro": Target(avro_case, "AVRO"),
    "Protobuf": Target(protobuf_case, "PROTOBUF", lambda layout: WireFormat(layout, chooses_message=True)),
    "JsonSchema": Target(json_schema_case, "JSON"),
    "ConnectJson": Target(json_envelope_case),
    "Cbor": Target(cbor_case),
    "MessagePack": Target(message_pack_case),
    "Json": Target(json_case, keeps_values=True),
    "Text": Target(text_case, is_json=False, keeps_values=True),
    "Bytes": Target(bytes_case, is_json=False, keeps_values=True),
}


def case_of(converter: str, seed: int, batch: int) -> Case:
    """The batch with the number `batch` of a seed."""
    return TARGETS[converter].case(Random(f"{converter}/{seed}/{batch}"))


def converter_of(case: Case, output: OutputFormat) -> ValueConverter:
    """A new converter with the settings of a batch."""
    target = TARGETS[case.converter]
    has_wire_format = target.language is not None and case.layout != ""
    settings = SchemaSettings(
        table=None if target.language is None else _Table(case, target.language),
        wire_format=target.wire_format(Layout(case.layout)) if has_wire_format else None,
        bare_values=None if has_wire_format else "1",
        message=case.message,
        output=output,
        options=JsonOptions(DecimalFormat(case.decimals), TimestampFormat(case.timestamps)),
    )
    return converter_for(ConverterType(case.converter), case.fields, output=output, schemas=settings)


class _Table:
    """The schemas of a batch. The driver has not resolved ids that end with 7; the registry knows no others."""

    def __init__(self, case: Case, language: str) -> None:
        self._schemas = {
            schema_id: RegisteredSchema(schema_id, language, text, version=number)
            for number, text in enumerate(case.schemas, 1)
            for schema_id in (str(number), str(UUID(int=number)))
        }

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        if schema_id in self._schemas:
            return self._schemas[schema_id]
        if schema_id.endswith("7"):
            return None
        raise UnknownSchema(f"the registry does not know schema {schema_id}")
