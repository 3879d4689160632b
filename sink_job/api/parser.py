"""From text to an S3Sink, or to all of its mistakes at once.

pydantic finds every mistake of single fields in one pass, but cannot go on to what fields mean together while one is
wrong. So what is wrong is set aside (a required field gets its example), the rest is read, and the rules look at it;
they keep quiet about whatever was set aside.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sink_job.api import cross_field_rules, unsupported, yaml_loader
from sink_job.api.errors import InvalidSpec
from sink_job.api.field_errors import FieldError, Path, field_at, of_pydantic, section_of, shown
from sink_job.api.quantities import MANIFEST

if TYPE_CHECKING:
    from sink_job.api.spec import Sink

_CONNECT: Final = (
    "this is a configuration of Kafka Connect, not an S3Sink: docs/migrating.md has the table of what each of its keys "
    "becomes"
)
_CONNECT_PROPERTIES: Final = re.compile(r"^\s*connector\.class\s*=", re.MULTILINE)
_KIND: Final = re.compile(r"\bkind[\"']?\s*:", re.ASCII)

_PASSES: Final = 6  # each goes one section deeper: the deepest field stands under four


def load(text: str, model: type[Sink], *, for_job: bool) -> Sink:
    """The S3Sink in the YAML `text`. Raises InvalidSpec."""
    if _CONNECT_PROPERTIES.search(text) and not _KIND.search(text):
        raise InvalidSpec([_CONNECT])
    document, doubled = yaml_loader.read(text)
    try:
        return parse(document, model, for_job=for_job, doubled=doubled)
    except RecursionError:  # an anchor that holds itself
        raise InvalidSpec([yaml_loader.TOO_DEEP]) from None


def parse(document: object, model: type[Sink], *, for_job: bool, doubled: Iterable[str] = ()) -> Sink:
    """The S3Sink in `document`, plain data as a Kubernetes client gives it. Raises InvalidSpec.

    `for_job`: also refuse what is not built yet. `doubled`: mistakes that the reading of the text has found.
    """
    found = list(doubled)
    if not isinstance(document, dict):
        raise InvalidSpec([*found, "the manifest is not a mapping: write apiVersion, kind, metadata and spec"])
    if _is_of_connect(document):
        raise InvalidSpec([_CONNECT])
    foreign = list(_foreign(document))
    if foreign:
        raise InvalidSpec([*found, *map(str, foreign)])
    sink, mistakes = _read(yaml_loader.without_nulls(document), model)
    if sink is not None:
        aside = [path for mistake in mistakes for path in (mistake.path, *mistake.depends)]
        meant = [
            *cross_field_rules.check_cross_fields(sink.spec),
            *(unsupported.unsupported_features(sink.spec) if for_job else ()),
        ]
        mistakes += [mistake for mistake in meant if not _touches(mistake, aside)]
    if found or mistakes or sink is None:
        raise InvalidSpec([*found, *map(str, mistakes)])
    return sink


def _is_of_connect(document: dict[str, Any]) -> bool:
    """Whether this is what Kafka Connect's REST interface takes or gives, or a resource of Strimzi."""
    config = document.get("config")
    if isinstance(config, dict) and "kind" not in document:
        return "connector.class" in config
    return "connector.class" in document or document.get("kind") == "KafkaConnector"


def _foreign(document: dict[str, Any]) -> Iterable[FieldError]:
    """Whether this is an S3Sink at all: if not, every further complaint would be noise."""
    for name, ours in (("apiVersion", "s3sink.io/v1alpha1"), ("kind", "S3Sink")):
        if name not in document:
            yield FieldError((name,), f"is missing: write {name}: {ours}")
        elif document[name] != ours:
            said = f"{shown((name,), document[name])} is not {ours}, the only one that is read here"
            yield FieldError((name,), said)


def _read(document: dict[str, Any], model: type[Sink]) -> tuple[Sink | None, list[FieldError]]:
    """The sink as far as it can be read, and the mistakes of single fields; None where nothing could be mended."""
    mistakes: list[FieldError] = []
    rest = document
    for attempt in range(_PASSES):
        try:
            return model.model_validate(rest, context=MANIFEST, by_alias=True, by_name=False), mistakes
        except ValidationError as error:
            details = error.errors(include_url=False)
            if attempt == 0:
                mistakes = [of_pydantic(each, model) for each in details]
                rest = copy.deepcopy(document)
            for each in reversed(details):  # last items of lists first, so that positions stay true
                _set_aside(rest, each, model)
    return None, mistakes


def _set_aside(document: Any, error: ErrorDetails, model: type[Sink]) -> None:
    *way, last = error["loc"]
    place = document
    for step in way:
        place = place[step]
    if error["type"] == "missing":
        place[last] = _stand_in(model, error["loc"])
    elif isinstance(last, int) or last in place:
        del place[last]


def _stand_in(model: type[Sink], path: Path) -> Any:
    """Something that lets a section without this required field be read."""
    field = field_at(model, path)
    if field is None or section_of(field):
        return {}
    return copy.deepcopy(field.examples[0]) if field.examples else ""


def _touches(mistake: FieldError, aside: Iterable[Path]) -> bool:
    """Whether a mistake rests on a value that was set aside."""
    return any(
        mistake.path[: len(wrong)] == wrong
        or any(path[: len(wrong)] == wrong or wrong[: len(path)] == path for path in mistake.depends)
        for wrong in aside
    )
