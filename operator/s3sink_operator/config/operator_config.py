"""The configuration file of the operator: what applies to all sinks."""

from __future__ import annotations

from typing import Any, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from s3sink_operator.config.sink_defaults import SinkDefaults
from s3sink_operator.config.sink_restrictions import SinkRestrictions
from sink_job.api.base_model import SpecModel
from sink_job.api.units.quantities import MANIFEST

T = TypeVar("T", bound=SpecModel)


class OperatorConfig(SpecModel):
    """The sections of the file. Without a file, sinks have no defaults of the operator and are restricted."""

    sink_defaults: SinkDefaults = SinkDefaults()
    sink_restrictions: SinkRestrictions = SinkRestrictions()


def read_config(text: str) -> OperatorConfig:
    """The configuration in the YAML of a file. Raises ValueError with all errors."""
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"invalid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict) or set(document) - {"sinkDefaults", "sinkRestrictions"}:
        raise ValueError("the only fields are sinkDefaults and sinkRestrictions")
    return OperatorConfig(
        sink_defaults=_section(document, "sinkDefaults", SinkDefaults),
        sink_restrictions=_section(document, "sinkRestrictions", SinkRestrictions),
    )


def _section(document: dict[str, Any], name: str, model: type[T]) -> T:
    try:
        return model.model_validate(document.get(name) or {}, context=MANIFEST, by_alias=True, by_name=False)
    except ValidationError as error:
        found = [(".".join(map(str, (name, *each["loc"]))), _message(each)) for each in error.errors(include_url=False)]
        raise ValueError("; ".join(f"{path}: {message}" for path, message in found)) from None


def _message(error: ErrorDetails) -> str:
    return "unknown field, or one that only a sink can set" if error["type"] == "extra_forbidden" else error["msg"]
