"""Creates the client of a schema registry, and the source of all schemas of a sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sink_job.api.enums import RegistryType
from sink_job.api.sections.format_section import FormatSpec
from sink_job.registry.bare_values import BareValueSchema, bare_value_schema
from sink_job.registry.base import NamedSchemas, SchemaRegistry
from sink_job.registry.settings import RegistrySettings


def open_schemas(
    settings: FormatSpec,
    registry: RegistrySettings | None,
    wait: Callable[[float], bool],
    hide: Callable[[Iterable[str]], None],
) -> SchemaRegistry | None:
    """The schemas of a sink's records: those of the registry, and the one of bare values. None if the sink
    has neither. See `open_registry` for the other arguments. Raises ConfigurationError for an invalid schema."""
    bare_values = bare_value_schema(settings)
    found = None if registry is None else open_registry(registry, wait, hide)
    return found if bare_values is None else BareValueSchema(bare_values, found)


def open_registry(
    settings: RegistrySettings, wait: Callable[[float], bool], hide: Callable[[Iterable[str]], None]
) -> NamedSchemas:
    """The client for `settings`. Sends no request. `wait` pauses for a number of seconds and returns True if the driver
    has to stop. `hide` gets the secrets to redact in all output, each time when they were read.

    The client library is imported here: only drivers of sinks with a registry load it.
    """
    if settings.type is RegistryType.APICURIO:
        from sink_job.registry.clients.apicurio import ApicurioRegistry

        return ApicurioRegistry(settings, wait, hide)
    if settings.type is RegistryType.GLUE:
        from sink_job.registry.clients.glue import GlueRegistry

        return GlueRegistry(settings, wait)
    from sink_job.registry.clients.confluent import ConfluentRegistry

    return ConfluentRegistry(settings, wait, hide)
