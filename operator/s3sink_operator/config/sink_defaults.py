"""Defaults of the operator for all sinks, from its configuration file, and how they are merged into a spec. Pure.

Only fields without a default in the CustomResourceDefinition can have one here: the API server writes those into each
S3Sink, and whether a user wrote them is unknown. The models mark such fields (`sink_job.api.base_model`), and the CRD
has their defaults in the descriptions (ADR 21). What a sink sets always wins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, StrictBool, StrictInt, StringConstraints, field_validator, model_validator

from s3sink_operator.config.template_merge import (
    CONTAINER,
    DRIVER_SPILL_VOLUME,
    EXECUTOR_SPILL_VOLUME,
    LIST_KEYS,
    REPLACED_ITEMS,
    item_key,
    merge,
    own_container,
    section,
)
from sink_job.api.base_model import SpecModel
from sink_job.api.enums import ExecutorMode, MemoryMode
from sink_job.api.field_types import Endpoint, Region
from sink_job.api.sections.operator_sections import MAX_CORES, ExecutorMemory, LocalRef, MemorySpec
from sink_job.api.sections.secret_refs import SecretKey, SecretRef
from sink_job.api.units.quantities import format_size

Json = dict[str, Any]
Label = Annotated[str, StringConstraints(strict=True)]

MAX_APPLIED: Final = 64
"""Applied defaults that the status lists."""
_MAX_VALUE: Final = 200
_ENV: Final = "env"
_TEMPLATE_FIELDS: Final = ("metadata", "spec")
_MERGED: Final = frozenset({"memory"})
"""Fields of a default section that are merged by their own fields. All others are one value."""
DEFAULTED_FIELDS: Final = (
    *(("s3", name) for name in ("pathStyle", "insecure")),
    *(("executor", "memory", name) for name in ("mode", "min", "max")),
    ("executor", "cores"),
    ("driver", "cores"),
)
"""Fields with a default of this version that one of the operator replaces. The CRD has no default for them."""


class AppliedDefault(NamedTuple):
    """A field of a sink that has its value from the operator."""

    field: str
    value: str


class S3Defaults(SpecModel):
    """The connection to S3. A sink with an endpoint of its own uses none of these, and with `endpoint` neither does one
    with accelerate or dualStack."""

    endpoint: Endpoint | None = None
    path_style: StrictBool = False
    insecure: StrictBool = False
    ca_secret: SecretKey | None = None
    region: Region | None = None
    credentials: SecretRef | None = None


class MemoryDefaults(SpecModel):
    """Memory sizing of executors; the bounds are sizes in bytes, as in `spec.executor.memory`."""

    mode: MemoryMode | None = None
    min: ExecutorMemory | None = None
    max: ExecutorMemory | None = None

    @model_validator(mode="after")
    def _in_order(self) -> MemoryDefaults:
        """A sink that sets neither of them must be valid: what is not set here has the default of this version."""
        known = MemorySpec()
        least, most = self.min or known.min, self.max or known.max
        if least > most:
            raise ValueError(
                f"min {format_size(least)} is above max {format_size(most)}{'' if self.max else ', its default'}"
            )
        return self


class ExecutorDefaults(SpecModel):
    """Concurrent tasks and memory of the executors."""

    cores: Annotated[StrictInt, Field(ge=1, le=MAX_CORES)] | None = None
    memory: MemoryDefaults = MemoryDefaults()


class DriverDefaults(SpecModel):
    """CPUs of the drivers."""

    cores: Annotated[StrictInt, Field(ge=1, le=MAX_CORES)] | None = None


class SinkDefaults(SpecModel):
    """The section `sinkDefaults` of the operator's configuration. Secrets are in the namespace of each sink."""

    image_pull_secrets: list[LocalRef] = Field(default_factory=list)
    labels: dict[str, Label] = Field(default_factory=dict)
    annotations: dict[str, Label] = Field(default_factory=dict)
    node_selector: dict[str, Label] = Field(default_factory=dict)
    tolerations: list[Json] = Field(default_factory=list)
    resources: dict[str, Any] = Field(default_factory=dict)
    spill_volume: Json = Field(default_factory=dict)
    pod_template: Json = Field(default_factory=dict)
    s3: S3Defaults = S3Defaults()
    executor: ExecutorDefaults = ExecutorDefaults()
    driver: DriverDefaults = DriverDefaults()

    @field_validator("resources")
    @classmethod
    def _no_memory(cls, resources: Json) -> Json:
        if any("memory" in section(resources, kind) for kind in resources):
            raise ValueError("memory is sized by the operator: set sinkDefaults.executor.memory")
        return resources

    @field_validator("pod_template")
    @classmethod
    def _known_sections(cls, template: Json) -> Json:
        if unknown := [name for name in template if name not in _TEMPLATE_FIELDS]:
            raise ValueError(f"{', '.join(unknown)} is not a field of a pod template: use metadata and spec")
        return template

    def document(self) -> Json:
        """The defaults that are set, as JSON."""
        return _document(self)

    @property
    def is_empty(self) -> bool:
        return self == NO_DEFAULTS

    def apply(self, spec: Any) -> Any:
        """The spec of a sink with these defaults. `spec` may be invalid; what is not a mapping is unchanged."""
        if self.is_empty or not isinstance(spec, dict):
            return spec
        made = dict(spec)
        made |= self._image_pull_secrets(spec)
        if isinstance(s3 := spec.get("s3"), dict):
            made["s3"] = s3 | self._s3(spec, s3)
        made |= {name: _filled(spec.get(name), fields) for name, fields in self._sizes(spec).items()}
        for process, volume in _processes(spec):
            given = made.get(process) or {}
            template = self._template(given, volume) if isinstance(given, dict) else {}
            if template:
                made[process] = given | {"podTemplate": merge(template, given.get("podTemplate") or {})}
        return made

    def applied(self, spec: Any) -> Sequence[AppliedDefault]:
        """The fields that have their value from here, by name."""
        if self.is_empty or not isinstance(spec, dict):
            return ()
        found = [AppliedDefault(f"spec.{name}", _text(value)) for name, value in self._image_pull_secrets(spec).items()]
        if isinstance(s3 := spec.get("s3"), dict):
            found += [AppliedDefault(f"spec.s3.{name}", _text(value)) for name, value in self._s3(spec, s3).items()]
        for name, fields in self._sizes(spec).items():
            found += [AppliedDefault(f"spec.{name}.{path_text(path)}", _text(value)) for path, value in leaves(fields)]
        for process, volume in _processes(spec):
            given = spec.get(process) or {}
            if isinstance(given, dict):
                template = given.get("podTemplate") or {}
                found += [
                    AppliedDefault(f"spec.{process}.podTemplate.{path_text(path)}", shown(path, value))
                    for path, value in leaves(self._template(given, volume))
                    if not _is_set(template, path)
                ]
        return tuple(found[:MAX_APPLIED])

    def overridden(self, spec: Any) -> Sequence[str]:
        """The fields that the spec sets to another value than these defaults. An earlier version of the CRD had a
        default for them, which the API server wrote into the sinks of that time."""
        known = self.document()
        s3 = _value(spec, ("s3",))
        is_elsewhere = isinstance(s3, dict) and self._is_elsewhere(s3)
        paths = (path for path in DEFAULTED_FIELDS if not (is_elsewhere and path[0] == "s3"))
        pairs = ((path, _value(spec, path), _value(known, path)) for path in paths)
        return [f"spec.{'.'.join(path)}" for path, own, value in pairs if None not in (own, value) and own != value]

    def _image_pull_secrets(self, spec: Json) -> Json:
        if not self.image_pull_secrets or spec.get("imagePullSecrets"):
            return {}
        return {"imagePullSecrets": [{"name": ref.name} for ref in self.image_pull_secrets]}

    def _s3(self, spec: Json, given: Json) -> Json:
        """The defaults for this connection. An endpoint comes with its addressing; a sink with a service account of its
        own has its own identity. accelerate and dualStack are of AWS, and so is a sink with one of them."""
        known = _document(self.s3)
        if self._is_elsewhere(given):
            return {}
        if given.get("accelerate") is True:
            known.pop("pathStyle", None)
        account = spec.get("serviceAccount")
        if isinstance(account, dict) and (account.get("name") or account.get("annotations")):
            known.pop("credentials", None)
        if given.get("anonymous") is True:
            known.pop("credentials", None)
        return _missing(known, given)

    def _is_elsewhere(self, given: Json) -> bool:
        """Whether a sink has another store than that of the defaults."""
        is_of_aws = given.get("accelerate") is True or given.get("dualStack") is True
        return bool(given.get("endpoint")) or (self.s3.endpoint is not None and is_of_aws)

    def _sizes(self, spec: Json) -> dict[str, Json]:
        """The defaults for the fields that `spec.executor` and `spec.driver` do not set, by section."""
        sections = {"executor": _document(self.executor), "driver": _document(self.driver)}
        given = {name: spec.get(name) or {} for name in sections}
        found = {
            name: _missing(known, given[name]) for name, known in sections.items() if isinstance(given[name], dict)
        }
        return {name: fields for name, fields in found.items() if fields}

    def _template(self, given: Json, volume: str) -> Json:
        """The pod template of a process. Default resources apply to a container without any of its own."""
        metadata = {name: found for name in ("labels", "annotations") if (found := getattr(self, name))}
        spec: Json = {}
        if self.node_selector:
            spec["nodeSelector"] = self.node_selector
        if self.tolerations:
            spec["tolerations"] = self.tolerations
        if self.resources and not own_container(given.get("podTemplate")).get("resources"):
            spec["containers"] = [{"name": CONTAINER, "resources": self.resources}]
        if self.spill_volume:
            spec["volumes"] = [{"name": volume, **self.spill_volume}]
        made = {name: found for name, found in (("metadata", metadata), ("spec", spec)) if found}
        return dict(merge(made, self.pod_template))


NO_DEFAULTS: Final = SinkDefaults()
Path = tuple[str | tuple[str, str], ...]
"""Steps into a template: the name of a field, or the key and the name of a list item."""


def leaves(node: Any, path: Path = (), key: str = "") -> Iterator[tuple[Path, Any]]:
    """The values of a pod template with their paths. Lists without names, and items with one source, are one value."""
    if isinstance(node, dict) and node:
        for name, inner in node.items():
            yield from leaves(inner, (*path, name), name)
    elif isinstance(node, list) and key in LIST_KEYS and all(item_key(each, LIST_KEYS[key]) for each in node):
        by = LIST_KEYS[key]
        for each in node:
            here = (*path, (by, str(each[by])))
            rest = {name: inner for name, inner in each.items() if name != by}
            if key in REPLACED_ITEMS:
                yield here, rest
            else:
                yield from leaves(rest, here)
    else:
        yield path, node


def path_text(path: Path) -> str:
    """The path in a message: `spec.containers[s3sink].resources`."""
    return "".join(f".{step}" if isinstance(step, str) else f"[{step[1]}]" for step in path).removeprefix(".")


def shown(path: Path, value: Any) -> str:
    """A value in one short line. The values of environment variables may be secrets and are not shown."""
    if _ENV in path:
        return "(not shown)"
    return _text(value)


def _value(node: Any, path: Sequence[str]) -> Any:
    """The value at a path; None if it is not set."""
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node


def _document(section: SpecModel) -> Json:
    """The fields of a section that are set, as JSON."""
    return section.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _missing(known: Json, given: Json) -> Json:
    """The part of `known` that `given` does not set. An empty field is not set; `false` and 0 are."""
    found: Json = {}
    for name, value in known.items():
        own = given.get(name)
        if own is None or own in ("", [], {}):
            found[name] = value
        elif isinstance(value, dict) and isinstance(own, dict) and name in _MERGED and (rest := _missing(value, own)):
            found[name] = rest
    return found


def _filled(given: Any, fields: Json) -> Json:
    """`given` with the fields that it does not set."""
    own = given or {}
    return own | {
        name: _filled(own.get(name), value) if isinstance(value, dict) else value for name, value in fields.items()
    }


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"


def _is_set(template: Any, path: Path) -> bool:
    """Whether a template has a value at the path, or another kind of value on the way to it."""
    node = template
    for step in path:
        if isinstance(step, str):
            if not isinstance(node, dict):
                return True
            if step not in node:
                return False
            node = node[step]
        elif isinstance(node, list):
            by, name = step
            node = next((each for each in node if str(item_key(each, by)) == name), None)
            if node is None:
                return False
        else:
            return True
    return True


def _processes(spec: Json) -> tuple[tuple[str, str], ...]:
    """The sections with pod templates that this sink uses, with the volumes for spilled data."""
    executor = spec.get("executor")
    is_local = isinstance(executor, dict) and executor.get("mode") == ExecutorMode.LOCAL
    driver = ("driver", DRIVER_SPILL_VOLUME)
    return (driver,) if is_local else (driver, ("executor", EXECUTOR_SPILL_VOLUME))
