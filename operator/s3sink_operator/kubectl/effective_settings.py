"""The effective settings of a sink and where each comes from: its spec, its annotations, or the defaults of the
operator. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from s3sink_operator import names
from s3sink_operator.config.sink_defaults import DEFAULTED_FIELDS, leaves, path_text, shown
from s3sink_operator.kubectl.formatting import format_table
from s3sink_operator.kubectl.view import stale_reason, status_of
from s3sink_operator.nesting import too_deep
from s3sink_operator.types import Json, annotation
from sink_job.api.enums import DesiredState
from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from sink_job.api.rules.reserved_properties import redacted
from sink_job.api.sections import skip_section
from sink_job.api.spec import Sink

OF_SPEC: Final = "spec"
OF_OPERATOR: Final = "operator"
OF_ANNOTATION: Final = "annotation"
_STATE: Final = "spec.state"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One field with its value. `source`: OF_SPEC, OF_OPERATOR or OF_ANNOTATION."""

    field: str
    value: str
    source: str


def settings_of(sink: Json) -> list[Setting]:
    """The settings that differ from the defaults of this version, by field. Those of the operator are in the status.
    The records to skip of an annotation are those that the spec does not list; a state in one overrides that of the
    spec.

    Raises InvalidSpec for an invalid spec, also for one that is nested too deeply.
    """
    if (error := too_deep(sink.get("spec"), "spec")) is not None:
        raise InvalidSpec([error])
    document = {name: sink.get(name) for name in ("apiVersion", "kind", "spec")}
    meta = {name: sink["metadata"].get(name) for name in ("name", "namespace")}
    parsed = parse_sink({**document, "metadata": meta}, for_job=False)
    found = [
        Setting(field=path_text(("spec", *path)), value=shown(path, value), source=OF_SPEC)
        for path, value in leaves(_without_secrets(parsed))
    ]
    listed = {each.field for each in found}
    found += [each for each in _explicit(sink) if each.field not in listed]
    found += _skips_of_annotation(sink)
    requested = annotation(sink, names.STATE_ANNOTATION)
    if requested in [each.value for each in DesiredState]:
        found = [each for each in found if each.field != _STATE]
        found.append(Setting(field=_STATE, value=requested, source=OF_ANNOTATION))
    applied = status_of(sink).applied_defaults or ()
    found += [Setting(field=each.field, value=each.value, source=OF_OPERATOR) for each in applied]
    return sorted(found, key=lambda each: each.field)


def _explicit(sink: Json) -> Iterator[Setting]:
    """The fields that the sink sets although the operator has a default for them, also to the one of this version."""
    for path in DEFAULTED_FIELDS:
        value: Any = sink.get("spec")
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            yield Setting(field=path_text(("spec", *path)), value=shown(path, value), source=OF_SPEC)


def _skips_of_annotation(sink: Json) -> Iterator[Setting]:
    """The records to skip that the annotation adds to those of the spec; none if it is invalid."""
    text, path = annotation(sink, names.SKIP_ANNOTATION), ("spec", "errors", "skip")
    if text is None or invalid_skips(sink) is not None:
        return
    spec = sink.get("spec")
    listed = ((spec.get("errors") or {}).get("skip") or ()) if isinstance(spec, dict) else ()
    if added := [each for each in skip_section.parse_records(text) if each not in listed]:
        yield Setting(field=path_text(path), value=shown(path, added), source=OF_ANNOTATION)


def invalid_skips(sink: Json) -> str | None:
    """Why the annotation with records to skip is ignored; None if it is not."""
    try:
        skip_section.with_records(sink.get("spec"), annotation(sink, names.SKIP_ANNOTATION) or "")
    except ValueError as error:
        return str(error)
    return None


def explanation(sink: Json) -> str:
    """A table of the settings."""
    rows = [[each.field, each.value, each.source] for each in settings_of(sink)]
    stale = stale_reason(sink)
    invalid = invalid_skips(sink)
    notes = [
        *([] if stale is None else [f"The defaults of the operator may be outdated: {stale}."]),
        *([] if invalid is None else [f"The annotation {names.SKIP_ANNOTATION} is ignored: {invalid}."]),
    ]
    return "\n".join([format_table(["FIELD", "VALUE", "SOURCE"], rows), *([""] if notes else []), *notes])


def as_data(sink: Json) -> Json:
    """The JSON of the settings."""
    return {
        "namespace": sink["metadata"].get("namespace"),
        "name": sink["metadata"]["name"],
        "settings": [{"field": each.field, "value": each.value, "source": each.source} for each in settings_of(sink)],
    }


def _without_secrets(sink: Sink) -> Json:
    """The spec without defaults, with placeholders for properties whose values may be secrets."""
    spec: dict[str, Any] = sink.model_dump(mode="json", by_alias=True, exclude_defaults=True)["spec"]
    if sink.spec.kafka.properties:
        spec["kafka"]["properties"] = redacted(sink.spec.kafka.properties)
    if sink.spec.spark_conf:
        spec["sparkConf"] = redacted(sink.spec.spark_conf)
    return spec
