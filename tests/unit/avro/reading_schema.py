"""The schema with which fastavro reads data to the values of `sink_job.avro.row_decoder`.

It has the same binary form as the schema of the data, but is simpler. It has no logical types: a decimal is bytes,
dates and times are integers. Each member of a union of several types is a record with one field, which has the
member's name. Named types have no namespaces, aliases and defaults.
"""

from __future__ import annotations

from sink_job.avro.schema import NAMED, AvroType


def reading_schema(avro: AvroType) -> object:
    """The reading schema of `avro` as Avro's JSON form: texts, lists and dicts."""
    return _Reading().schema(avro)


class _Reading:
    def __init__(self) -> None:
        self.names: dict[AvroType, str] = {}
        self.count = 0

    def schema(self, avro: AvroType) -> object:
        if avro.kind in NAMED:
            return self.names.get(avro) or self._named(avro)
        match avro.kind:
            case "union":
                return self._union(avro)
            case "array":
                return {"type": "array", "items": self.schema(avro.items)}
            case "map":
                return {"type": "map", "values": self.schema(avro.items)}
        return avro.kind

    def _named(self, avro: AvroType) -> object:
        self.names[avro] = name = self._next_name()
        match avro.kind:
            case "enum":
                return {"type": "enum", "name": name, "symbols": avro.symbols}
            case "fixed":
                return {"type": "fixed", "name": name, "size": avro.size}
        return self._record(name, [(field.name, field.type) for field in avro.fields])

    def _record(self, name: str, fields: list[tuple[str, AvroType]]) -> object:
        return {
            "type": "record",
            "name": name,
            "fields": [{"name": field, "type": self.schema(of_field)} for field, of_field in fields],
        }

    def _union(self, avro: AvroType) -> object:
        if avro.nullable is not None or avro.single is not None:
            return [self.schema(member) for member in avro.members]
        return [
            "null" if member.kind == "null" else self._record(self._next_name(), [(member.member_name, member)])
            for member in avro.members
        ]

    def _next_name(self) -> str:
        self.count += 1
        return f"t{self.count}"
