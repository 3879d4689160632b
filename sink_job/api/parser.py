"""Parses text into an S3Sink, and reports all errors at once.

pydantic finds all errors of single fields in one pass, but builds no model while a field is invalid. Cross-field rules
need the model. The parser therefore removes each invalid field (a required field gets its example), builds the model
from the rest, and applies the cross-field rules. It drops their errors that depend on a removed field.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sink_job.api import yaml_loader
from sink_job.api.errors import InvalidSpec
from sink_job.api.field_errors import FieldError, Path, field_at, of_pydantic, section_of, shown
from sink_job.api.rules import cross_field_rules, unsupported
from sink_job.api.sections import skip_section
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import MANIFEST

_CONNECT: Final = (
    "this is a configuration of Kafka Connect, not an S3Sink: s3sink convert makes a manifest of it (docs/migrating.md)"
)
_CONNECT_PROPERTIES: Final = re.compile(r"^\s*connector\.class\s*=", re.MULTILINE)
_KIND: Final = re.compile(r"\bkind[\"']?\s*:", re.ASCII)

_NO_DEFAULT: Final = "default_factory_not_called"  # pydantic, for a default that depends on an invalid value
_PASSES: Final = 6  # each pass reaches one section deeper; the deepest field has four parent sections


def load_sink(text: str, *, for_job: bool = True) -> Sink:
    """The S3Sink in the YAML `text`. Raises InvalidSpec with all errors at once.

    `for_job`: also reject features that this version of the job does not support.
    """
    if _CONNECT_PROPERTIES.search(text) and not _KIND.search(text):
        raise InvalidSpec([_CONNECT])
    document, doubled = yaml_loader.read(text)
    try:
        return _parse(document, for_job=for_job, doubled=doubled)
    except RecursionError:  # an anchor that contains itself
        raise InvalidSpec([yaml_loader.TOO_DEEP]) from None


def parse_sink(document: object, *, for_job: bool = True) -> Sink:
    """Like `load_sink`, for plain data such as the result of a Kubernetes client."""
    return _parse(document, for_job=for_job)


def _parse(document: object, *, for_job: bool, doubled: Iterable[str] = ()) -> Sink:
    """`doubled`: errors for duplicate keys in the text."""
    found = list(doubled)
    if not isinstance(document, dict):
        raise InvalidSpec([*found, "the manifest is not a mapping: set apiVersion, kind, metadata and spec"])
    if _is_of_connect(document):
        raise InvalidSpec([_CONNECT])
    foreign = list(_foreign(document))
    if foreign:
        raise InvalidSpec([*found, *map(str, foreign)])
    document, of_annotation = skip_section.with_annotation(yaml_loader.without_nulls(document))
    sink, errors = _read(document)
    errors += of_annotation
    if sink is not None:
        removed = [path for error in errors for path in (error.path, *error.depends)]
        further = [
            *cross_field_rules.check_cross_fields(sink.spec),
            *(unsupported.unsupported_features(sink.spec) if for_job else ()),
        ]
        errors += [error for error in further if not _depends_on(error, removed)]
    if found or errors or sink is None:
        raise InvalidSpec([*found, *map(str, errors)])
    return sink


def _is_of_connect(document: dict[str, Any]) -> bool:
    """True for a connector configuration of Kafka Connect's REST API or a KafkaConnector of Strimzi."""
    config = document.get("config")
    if isinstance(config, dict) and "kind" not in document:
        return "connector.class" in config
    return "connector.class" in document or document.get("kind") == "KafkaConnector"


def _foreign(document: dict[str, Any]) -> Iterable[FieldError]:
    """Errors of a document that is not an S3Sink. Further errors of such a document are not reported."""
    for name, supported in (("apiVersion", "s3sink.io/v1alpha1"), ("kind", "S3Sink")):
        if name not in document:
            yield FieldError((name,), f"is missing: set {name}: {supported}")
        elif document[name] != supported:
            message = f"{shown((name,), document[name])} is not supported: the only supported value is {supported}"
            yield FieldError((name,), message)


def _read(document: dict[str, Any]) -> tuple[Sink | None, list[FieldError]]:
    """The sink without its invalid fields, and the errors of single fields; None if no model can be built."""
    errors: list[FieldError] = []
    rest = document
    for attempt in range(_PASSES):
        try:
            return Sink.model_validate(rest, context=MANIFEST, by_alias=True, by_name=False), errors
        except ValidationError as error:
            details = [each for each in error.errors(include_url=False) if each["type"] != _NO_DEFAULT]
            if attempt == 0:
                errors = [of_pydantic(each, Sink) for each in details]
                rest = copy.deepcopy(document)
            for each in reversed(details):  # last items of lists first: the indexes before them stay valid
                _remove(rest, each)
    return None, errors


def _remove(document: Any, error: ErrorDetails) -> None:
    """Removes the invalid field of `error` from `document`, or adds an example of a missing one."""
    *parents, last = error["loc"]
    section = document
    for step in parents:
        section = section[step]
    if error["type"] == "missing":
        section[last] = _placeholder(error["loc"])
    elif isinstance(last, int) or last in section:
        del section[last]


def _placeholder(path: Path) -> Any:
    """A value for a missing required field, to make its section valid."""
    field = field_at(Sink, path)
    if field is None or section_of(field):
        return {}
    return copy.deepcopy(field.examples[0]) if field.examples else ""


def _depends_on(error: FieldError, removed: Iterable[Path]) -> bool:
    """True if an error depends on a removed value."""
    return any(
        error.path[: len(invalid)] == invalid
        or any(path[: len(invalid)] == invalid or invalid[: len(path)] == path for path in error.depends)
        for invalid in removed
    )
