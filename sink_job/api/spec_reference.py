"""The field reference, docs/spec.md, made from the models: `python -m sink_job.api.spec_reference > docs/spec.md`.

A test compares the page with what this makes, so the two cannot drift apart.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sink_job.api import unsupported
from sink_job.api.field_errors import Path, connector_key, is_list, section_of
from sink_job.api.spec import Sink, Spec

Schema = dict[str, Any]

_HEAD: Final = """\
# The S3Sink, field by field

This page is generated: `python -m sink_job.api.spec_reference > docs/spec.md`. A test compares the two.

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

- **Durations** carry their units, largest first: `1d`, `1h30m`, `10s`, `250ms`. A bare number is refused.
- **Sizes** are Kubernetes quantities: bytes, or `Ki` `Mi` `Gi` `Ti` (by 1024), `k` `M` `G` `T` (by 1000).
- **All mistakes are reported at once**, each with its path, the value and what is allowed. A field that does not exist
  is refused, and so is a setting that this version cannot do yet (marked *later* below).
- **Secrets** stand in secrets: `s3.credentials`, `s3.caSecret` and `kafka.propertySecrets` name them. In a cluster they
  are Kubernetes Secrets, on a laptop directories of the same layout: `s3sink run --secret name=directory`.
- A field that is left empty counts as not written.
"""

_WORDS: Final = {
    "string": "text",
    "integer": "number",
    "boolean": "true, false",
    "array": "list of text",
    "object": "mapping",
}

_RULES: Final = """\
## What has to fit together

- `kafka`: either `topics` or `topicsPattern`. A pattern matches whole names and never the dead-letter topic.
- `kafka.properties` and `kafka.propertySecrets` take every property of Kafka's client, without a prefix, but those that
  the sink sets by itself, such as `group.id`, `auto.offset.reset`, deserializers and fetch sizes. The message names the
  field to use instead. The same holds for `sparkConf`. Passwords, keys and logins with a password stand in
  `propertySecrets` alone.
- `partitioner.fields` and `timestampExtractor: RecordField` need a converter that gives fields: `Text` and `Bytes` do
  not.
- `rotation`: at least one of `flushSize`, `interval`, `scheduleInterval` and `maxBytes`.
- `rotation.interval` needs a time partitioner: `Time`, `Hourly`, `Daily` or `FieldAndTime`.
- `rotation.scheduleInterval` needs `partitioner.timezone`, and so does every time partitioner.
- `rotation.maxBytes` must fit into 10,000 parts of `s3.partSize`.
- `partitioner`: `Field` and `FieldAndTime` need `fields`; `Time` and `FieldAndTime` need `duration` and `pathFormat`;
  `Hourly` and `Daily` have their own.
- `partitioner.pathFormat`: the letters y Y M d D H h m s S a E e w x X Z z; text stands in single quotes.
- `s3.endpoint` with `http://` needs `s3.insecure: true`, except on this very machine.
- `s3.fileDelimiter` holds no digit, and neither of the two delimiters holds the other.
- `errors.deadLetterTopic` needs `errors.tolerance: All`, and is none of the topics that are read.
"""


def reference() -> str:
    """The whole page."""
    schema = Sink.model_json_schema(by_alias=True)
    tables = [_section(path, model, schema) for path, model in _sections(Spec, ("spec",))]
    return "\n".join([_HEAD, *tables, _RULES])


def _sections(model: type[BaseModel], path: Path) -> Iterator[tuple[Path, type[BaseModel]]]:
    """Every section with its path, outer ones before inner ones."""
    yield path, model
    for field in model.model_fields.values():
        inner = section_of(field)
        if inner:
            yield from _sections(inner, (*path, f"{field.alias}[]" if is_list(field) else str(field.alias)))


def _section(path: Path, model: type[BaseModel], schema: Schema) -> str:
    said = " ".join((model.__doc__ or "").split())
    rows = [_row(path, field, _resolved(schema, model, field)) for field in model.model_fields.values()]
    head = ["| field | value | default | what it is | connector key |", "|---|---|---|---|---|"]
    return "\n".join([f"## {_shown(path)}", "", said, "", *head, *rows, ""])


def _shown(path: Path) -> str:
    return ".".join(str(step) for step in path)


def _row(path: Path, field: FieldInfo, schema: Schema) -> str:
    here = (*path, str(field.alias))
    keys = ", ".join(f"`{key}`" for key in connector_key(field).split(", ") if key)
    said = schema["description"].replace("<", "&lt;").replace("|", "&#124;")
    later = " *Later.*" if here in unsupported.ABSENT else ""
    return f"| `{field.alias}` | {_value(here, field, schema)} | {_default(field, schema)} | {said}{later} | {keys} |"


def _resolved(schema: Schema, model: type[BaseModel], field: FieldInfo) -> Schema:
    """The schema of one field, with what it refers to put in its place."""
    written: Schema = schema["$defs"][model.__name__]["properties"][str(field.alias)]
    meant: Schema = schema["$defs"][written["$ref"].rsplit("/", 1)[1]] if "$ref" in written else {}
    return meant | written


def _value(path: Path, field: FieldInfo, schema: Schema) -> str:
    """What may be written, in a few words."""
    if section_of(field):
        here = _shown(path) + ("[]" if is_list(field) else "")
        anchor = "".join(letter for letter in here.lower() if letter.isalnum())
        return f"{'list of ' if is_list(field) else ''}[{here}](#{anchor})"
    if "enum" in schema:
        return _choices(path, schema["enum"])
    kind = str(schema.get("x-s3sink-type") or schema.get("type"))
    return _WORDS.get(kind, kind) + _bounds(schema)


def _choices(path: Path, values: list[str]) -> str:
    works = unsupported.CHOICES.get(path)
    now = [value for value in values if works is None or value in works]
    later = [value for value in values if value not in now]
    return ", ".join(f"`{value}`" for value in now) + (f"; later: {', '.join(later)}" if later else "")


def _bounds(schema: Schema) -> str:
    least = schema.get("x-s3sink-minimum", schema.get("minimum"))
    most = schema.get("x-s3sink-maximum", schema.get("maximum"))
    most = None if most == 2**53 - 1 else most
    if least is not None and most is not None:
        return f", {least} … {most}"
    return f", ≥ {least}" if least not in (None, "0", "0s") else ""


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
