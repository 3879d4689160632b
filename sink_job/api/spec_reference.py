"""Generates the field reference from the models: `python -m sink_job.api.spec_reference > docs/spec.md`.

A test compares docs/spec.md with the output of this module.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sink_job.api.field_errors import Path, connector_key, is_list, section_of
from sink_job.api.rules import unsupported
from sink_job.api.spec import Sink, Spec

Schema = dict[str, Any]

_HEAD: Final = """\
# The S3Sink, field by field

This page is generated: `python -m sink_job.api.spec_reference > docs/spec.md`. A test checks that it is up to date.

A manifest is one YAML document:

```yaml
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata:
  name: flights
  namespace: default
spec:
  kafka: {bootstrapServers: "kafka.example.com:9092", topics: [flights]}
  rotation: {flushSize: 100000}
  s3: {bucket: flights-archive}
```

- **Durations** have units, largest first: `1d`, `1h30m`, `10s`, `250ms`. A number without a unit is rejected.
- **Sizes** are Kubernetes quantities: bytes, or a number with `Ki` `Mi` `Gi` `Ti` (powers of 1024) or `k` `M` `G` `T`
  (powers of 1000).
- **All errors are reported at once**, each with its path, the value and what is allowed. Unknown fields are rejected.
  Settings that this version does not support yet are rejected too (marked *later* below).
- **Secrets** are never part of a manifest. `s3.credentials`, `s3.caSecret`, `kafka.login` and others reference them.
  In a cluster they are Kubernetes Secrets. On a laptop they are directories of the same layout:
  `s3sink run --secret name=directory`.
- An empty field is treated like a field that is not set.
"""

_WORDS: Final = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "true, false",
    "array": "list of text",
    "object": "mapping",
}

_RULES: Final = """\
## Rules for combinations of fields

- `kafka`: set either `topics` or `topicsPattern`. A pattern must match the whole topic name.
- `kafka.properties` and `kafka.propertySecrets` accept the properties of Kafka clients, without a prefix. Properties
  that the sink manages are rejected, for example `group.id`, `auto.offset.reset`, deserializers and fetch sizes. The
  message names the field to use instead. The same rule applies to `sparkConf`. Passwords, keys and logins with a
  password are allowed in `propertySecrets` only.
- `kafka.login` replaces properties, which must not be in `kafka.properties` or `kafka.propertySecrets` too.
  [kafka-logins.md](kafka-logins.md) lists them, and the keys of the Secrets.
- `partitioner.fields` and `timestampExtractor: RecordField` with fields of the value need a converter that parses
  fields. `Text` and `Bytes` do not parse fields.
- `$key` and `$key.<field>` in `partitioner.fields` and `timestampField` need `format.keyConverter`. `Text` has `$key`
  only, `Bytes` neither. Without them `keyConverter` needs `format.envelope`. Two fields must not have the same name in
  paths.
- `format.output: Avro` and `Parquet` need records with schemas: `format.converter` is `Avro`, `Protobuf` or
  `JsonSchema` with `format.registry` or `format.schema`, or `ConnectJson`, or `Json` with `format.schema` or
  `inference: Once`.
- `format.schema` and `inference: Once` exclude each other. With one of them `schemaCompatibility` must be `None`.
  `inference`, and `schema` with the converter `Json`, need the output `Avro` or `Parquet`. So do the values `Drop` and
  `Json` of `unknownFields`, which also need the converter `Json` or `JsonSchema`; with `JsonSchema` and
  `transforms` they can have each output.
- `format.compression` is one of the codecs that the output has.
- `format.envelope` cannot be used with the output `Bytes`. With the outputs `Avro` and `Parquet` it needs a
  `format.keyConverter` with schemas, `Text`, `Bytes`, or none; with one that has schemas, `schemaCompatibility` must be
  `None` or `Separate`.
- `errors.onNullValue: Write` needs `format.envelope`, and `errors.tombstonePath` needs `Write`. With the outputs `Avro`
  and `Parquet` and a `format.keyConverter` with schemas it needs `schemaCompatibility: Separate`.
- `transforms`: a type has the fields of docs/semantics.md, section 18. All but `Filter` without `field` need
  another `format.output` than `Bytes`, and `format.converter: Json` or one with schemas.
- `rotation`: set at least one of `flushSize`, `interval`, `scheduleInterval` and `maxBytes`.
- `rotation.interval` needs a time partitioner: `Time`, `Hourly`, `Daily` or `FieldAndTime`.
- `rotation.scheduleInterval` and every time partitioner need `partitioner.timezone`.
- `rotation.maxBytes` must not exceed 10,000 times `s3.partSize`.
- `partitioner`: `Field` and `FieldAndTime` need `fields`; `Time` and `FieldAndTime` need `duration` and `pathFormat`;
  `Hourly` and `Daily` have fixed values for both.
- `partitioner.pathFormat`: allowed letters are y Y M d D H h m s S a E e w x X Z z. Put text in single quotes.
- `s3.endpoint` with `http://` needs `s3.insecure: true`, except on loopback.
- `s3.fileDelimiter` must not contain a digit. Neither of the two delimiters may contain the other.
- An entry of `s3.prefixes` has either `topic` or `pattern`, and no topic that the sink does not read. With `prefixes`
  or `topicInPath: false`, `directoryDelimiter` must contain a character that no topic has, such as `/`, and `topicsDir`
  must not be empty beside `errors.deadLetters.prefix`.
- `errors.deadLetters.topic` and `prefix` need `errors.tolerance: All`. The topic must not be one of the source topics,
  by name or by pattern. `headers` and `delivery` need a topic. The prefix and `s3.topicsDir` must not contain each
  other.
"""


def reference() -> str:
    """The page in Markdown."""
    schema = Sink.model_json_schema(by_alias=True)
    tables = [_section(path, model, schema) for path, model in _sections(Spec, ("spec",))]
    return "\n".join([_HEAD, *tables, _RULES])


def _sections(model: type[BaseModel], path: Path) -> Iterator[tuple[Path, type[BaseModel]]]:
    """Every section with its path, outer sections first."""
    yield path, model
    for field in model.model_fields.values():
        inner = section_of(field)
        if inner:
            yield from _sections(inner, (*path, f"{field.alias}[]" if is_list(field) else str(field.alias)))


def _section(path: Path, model: type[BaseModel], schema: Schema) -> str:
    description = " ".join((model.__doc__ or "").split())
    rows = [_row(path, field, _resolved(schema, model, field)) for field in model.model_fields.values()]
    head = ["| field | value | default | description | connector key |", "|---|---|---|---|---|"]
    return "\n".join([f"## {_shown(path)}", "", description, "", *head, *rows, ""])


def _shown(path: Path) -> str:
    return ".".join(str(step) for step in path)


def _row(path: Path, field: FieldInfo, schema: Schema) -> str:
    here = (*path, str(field.alias))
    keys = ", ".join(f"`{key}`" for key in connector_key(field).split(", ") if key)
    description = schema["description"].replace("<", "&lt;").replace("|", "&#124;")
    description += " *Later.*" if here in unsupported.ABSENT else ""
    return f"| `{field.alias}` | {_value(here, field, schema)} | {_default(field, schema)} | {description} | {keys} |"


def _resolved(schema: Schema, model: type[BaseModel], field: FieldInfo) -> Schema:
    """The schema of one field, with references resolved."""
    own: Schema = schema["$defs"][model.__name__]["properties"][str(field.alias)]
    referenced: Schema = schema["$defs"][own["$ref"].rsplit("/", 1)[1]] if "$ref" in own else {}
    return referenced | own


def _value(path: Path, field: FieldInfo, schema: Schema) -> str:
    """The allowed values, in a few words."""
    if section_of(field):
        here = _shown(path) + ("[]" if is_list(field) else "")
        anchor = "".join(letter for letter in here.lower() if letter.isalnum())
        return f"{'list of ' if is_list(field) else ''}[{here}](#{anchor})"
    if "enum" in schema:
        return _choices(path, schema["enum"])
    kind = str(schema.get("x-s3sink-type") or schema.get("type"))
    return _WORDS.get(kind, kind) + _bounds(schema)


def _choices(path: Path, values: list[str]) -> str:
    supported = unsupported.CHOICES.get(path)
    now = [value for value in values if supported is None or value in supported]
    later = [value for value in values if value not in now]
    return ", ".join(f"`{value}`" for value in now) + (f"; later: {', '.join(later)}" if later else "")


def _bounds(schema: Schema) -> str:
    minimum = schema.get("x-s3sink-minimum", schema.get("minimum"))
    maximum = schema.get("x-s3sink-maximum", schema.get("maximum"))
    maximum = None if maximum == 2**53 - 1 else maximum
    if minimum is not None and maximum is not None:
        return f", {minimum} … {maximum}"
    return f", ≥ {minimum}" if minimum not in (None, "0", "0s") else ""


def _default(field: FieldInfo, schema: Schema) -> str:
    if field.is_required():
        return "**required**"
    default = schema.get("default")
    if section_of(field) or default in (None, [], {}):
        return "–"
    if default == "\n":
        return "line feed"
    return "empty" if default == "" else f"`{json.dumps(default) if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    sys.stdout.write(reference())
