"""Parses the spec of a sink once for each generation, and its annotations once for each text: a reset request, and
records to skip, which are added to those of the spec."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from s3sink_operator import names
from s3sink_operator.config.sink_defaults import NO_DEFAULTS, SinkDefaults
from s3sink_operator.config.sink_restrictions import NO_RESTRICTIONS, SinkRestrictions
from s3sink_operator.nesting import too_deep
from s3sink_operator.reasons import Reason
from s3sink_operator.types import Json, ParsedReset, ParsedSpec, annotation, uid_of
from s3sink_operator.watch.cached_objects import omitted_message
from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from sink_job.api.sections import skip_section
from sink_job.api.spec import GROUP, KIND, VERSION, Sink


@dataclass(frozen=True, kw_only=True)
class ParsedSink:
    """All that is parsed of a sink. `readable`: the sink with its unsupported features, for conflict checks.
    `skip_error`: why its skip annotation is ignored, or empty."""

    spec: ParsedSpec
    readable: Sink | None
    reset: ParsedReset | None
    skip_error: str = ""


@dataclass
class SpecCache:
    """The parsed sinks by namespace and name. An entry is valid for one uid, generation and text of annotations."""

    defaults: SinkDefaults = NO_DEFAULTS
    restrictions: SinkRestrictions = NO_RESTRICTIONS
    _parsed: dict[tuple[str, str], tuple[tuple[object, ...], ParsedSink]] = field(default_factory=dict)

    def parse(self, sink: Json) -> ParsedSink:
        """The parsed sink. Never raises for an invalid spec: the result holds the error."""
        metadata = sink["metadata"]
        omitted = omitted_message(sink)
        key = str(metadata.get("namespace")), str(metadata.get("name"))
        texts = [annotation(sink, name) for name in (names.RESET_OFFSETS_ANNOTATION, names.SKIP_ANNOTATION)]
        version = uid_of(sink), metadata.get("generation"), *texts, omitted
        cached = self._parsed.get(key)
        if cached is None or cached[0] != version:
            cached = self._parsed[key] = version, parse(sink, self.defaults, self.restrictions)
        return cached[1]

    def forget(self, namespace: str, name: str) -> None:
        """Removes the entry of a deleted sink."""
        self._parsed.pop((namespace, name), None)


def parse(
    sink: Json, defaults: SinkDefaults = NO_DEFAULTS, restrictions: SinkRestrictions = NO_RESTRICTIONS
) -> ParsedSink:
    """The parsed sink with the defaults of the operator, not cached. `restrictions` apply to what the user wrote."""
    if omitted := omitted_message(sink):
        return _invalid(omitted, Reason.NAMESPACE_TOO_LARGE)
    written = sink.get("spec")
    if (error := too_deep(written, "spec")) is not None:
        return _invalid(error, Reason.INVALID_SPEC)
    written, skip_error = _with_skips(sink, written)
    sink = sink | {"spec": defaults.apply(written)}
    spec, readable = _spec(sink, sink["spec"])
    if applied := defaults.applied(written):
        error = spec.error and spec.error + _hint(defaults, written, [each.field for each in applied])
        spec = replace(spec, error=error, written=_spec(sink, written)[0].sink)
    if spec.sink is not None and (rejected := restrictions.message(written)):
        spec = ParsedSpec(sink=None, error=rejected, reason=Reason.SINK_RESTRICTED)
    reset = _reset(sink) if spec.sink is not None else None
    return ParsedSink(spec=spec, readable=readable, reset=reset, skip_error=skip_error)


def _invalid(error: str, reason: Reason) -> ParsedSink:
    return ParsedSink(spec=ParsedSpec(sink=None, error=error, reason=reason), readable=None, reset=None)


def _with_skips(sink: Json, written: Any) -> tuple[Any, str]:
    """The spec with the records of the skip annotation, and why the annotation is ignored, or an empty text."""
    text = annotation(sink, names.SKIP_ANNOTATION)
    if text is None:
        return written, ""
    try:
        return skip_section.with_records(written, text), ""
    except ValueError as error:
        return written, str(error)


def _hint(defaults: SinkDefaults, written: Any, applied: Sequence[str]) -> str:
    """What an error message adds about the defaults of the operator."""
    hint = f"defaults of the operator apply to: {', '.join(applied)}"
    if own := defaults.overridden(written):
        hint += f"; values of the sink win: remove {', '.join(own)} from the sink to use the defaults of the operator"
    return f" ({hint})"


def _spec(sink: Json, spec: Any) -> tuple[ParsedSpec, Sink | None]:
    metadata = {name: sink["metadata"].get(name) for name in ("name", "namespace")}
    document = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata, "spec": spec}
    try:
        found = parse_sink(document)
    except InvalidSpec as error:
        return ParsedSpec(sink=None, error="; ".join(error.errors)), _readable(document)
    except RecursionError:
        return ParsedSpec(sink=None, error="the spec is nested too deeply"), None
    if len(found.name) > names.MAX_SINK_NAME:
        message = f"metadata.name: {found.name} is longer than {names.MAX_SINK_NAME} characters"
        return ParsedSpec(sink=None, error=message), found
    return ParsedSpec(sink=found), found


def _readable(document: Json) -> Sink | None:
    try:
        return parse_sink(document, for_job=False)
    except InvalidSpec:
        return None


def _reset(sink: Json) -> ParsedReset | None:
    """The request in the annotation, parsed in the place of spec.offsets."""
    text = annotation(sink, names.RESET_OFFSETS_ANNOTATION)
    if text is None:
        return None
    try:
        request = json.loads(text)
    except ValueError as error:
        return ParsedReset(error=f"invalid JSON: {error}")
    except RecursionError:
        return ParsedReset(error="the JSON is nested too deeply")
    if too_deep(request, "") is not None:
        return ParsedReset(error="the JSON is nested too deeply")
    if request is None:
        return ParsedReset(error="null is not a request: remove the annotation, or set nonce and to")
    nonce = request.get("nonce") if isinstance(request, dict) else None
    parsed, _ = _spec(sink, sink["spec"] | {"offsets": {"reset": request}})
    return ParsedReset(nonce=nonce if isinstance(nonce, str) else None, sink=parsed.sink, error=parsed.error)
