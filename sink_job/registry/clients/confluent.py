"""Confluent Schema Registry, and the registries with its REST API: Karapace, Redpanda, Apicurio (`/apis/ccompat/v7`).

Ids are the decimal ids of the wire format in the value, or the GUIDs of the wire format in a header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from sink_job.api.errors import ConfigurationError
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema, SchemaReference
from sink_job.registry.answers import is_text
from sink_job.registry.clients import errors
from sink_job.registry.clients.confluent_client import confluent_clients
from sink_job.registry.clients.rest_registry import RestRegistry
from sink_job.registry.failures import SCHEMA_NOT_FOUND, SUBJECT_NOT_FOUND, VERSION_NOT_FOUND
from sink_job.registry.references import InvalidReferences, Reference, Referenced, collect
from sink_job.registry.settings import RegistrySettings
from sink_job.registry.subjects import subject_of, unqualified

_NUMBER: Final = re.compile(r"-?[0-9]+")
_MAX_ID: Final = 2**31 - 1
_VERSIONS: Final = range(1, 2**31)
_UNKNOWN: Final = (SCHEMA_NOT_FOUND,)
_UNREGISTERED: Final = (SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND)


class ConfluentRegistry(RestRegistry[SchemaRegistryClient]):
    """A `SchemaRegistry`. `wait` pauses for a number of seconds and returns True if the driver has to stop. `hide` gets
    the secrets to redact in all output, each time when they were read."""

    def __init__(
        self, settings: RegistrySettings, wait: Callable[[float], bool], hide: Callable[[Iterable[str]], None]
    ) -> None:
        """Sends no request."""
        super().__init__(settings, confluent_clients, wait, hide)

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        """As `SchemaRegistry.fetch`. A number outside of Confluent's range is unknown without a request."""
        schema = self._schema(schema_id)
        if schema is None:
            return None
        language, text = schema.schema_type or "AVRO", schema.schema_str or ""
        subject = subject_of(self.settings.subjects, topic, language, text, is_key=is_key)
        return RegisteredSchema(
            id=schema_id,
            language=language,
            text=text,
            references=self._references(schema_id, schema),
            subject=subject,
            version=self._version(schema_id, subject, schema) if subject else None,
        )

    def latest(self, topic: str) -> RegisteredSchema | None:
        """The newest schema of the values of `topic`; None if its subject has none, or is not named by the topic."""
        subject = subject_of(self.settings.subjects, topic, "", "")
        if subject is None:
            return None

        def request(client: SchemaRegistryClient) -> tuple[int, int, Schema]:
            found = client.get_latest_version(subject)
            return _number(found.schema_id), _number(found.version), _complete(found.schema)

        answer = self._requests.send(f"the newest version of subject {subject}", request, absent=_UNREGISTERED)
        if answer is None:
            return None
        number, version, schema = answer
        references = self._references(str(number), schema)
        language = schema.schema_type or "AVRO"
        return RegisteredSchema(str(number), language, schema.schema_str or "", references, subject, version)

    def _schema(self, schema_id: str) -> Schema | None:
        if not _NUMBER.fullmatch(schema_id):
            return self._schema_of_guid(schema_id)
        number = int(schema_id)
        return self._schema_of_number(f"schema id {number}", number) if 0 <= number <= _MAX_ID else None

    def _schema_of_number(self, what: str, number: int) -> Schema | None:
        return self._requests.send(what, lambda client: _complete(client.get_schema(number)), absent=_UNKNOWN)

    def _schema_of_guid(self, guid: str) -> Schema | None:
        what = f"schema id {guid}"
        found = self._requests.send(what, lambda client: _by_guid(client, guid), absent=_UNKNOWN)
        if isinstance(found, SchemaRegistryError):
            self._schema_of_number(what, _MAX_ID)  # raises if the URL is not that of a registry
            raise UnknownSchema(
                f"the schema id {guid} is a GUID, and the schema registry has no GUIDs ({errors.text_of(found)}): set "
                "spec.format.registry.idIn: Value if the values contain an id, too"
            )
        return found

    def _references(self, schema_id: str, schema: Schema) -> tuple[SchemaReference, ...]:
        try:
            return collect(_names(schema), partial(self._referenced, schema_id))
        except InvalidReferences as error:
            raise ConfigurationError(
                f"schema registry {self.url}: schema id {schema_id} cannot be used: {error}. Register a schema without "
                "such references."
            ) from None

    def _referenced(self, schema_id: str, reference: Reference) -> Referenced:
        _, subject, version = reference

        def request(client: SchemaRegistryClient) -> Schema:
            return _complete(client.get_version(subject, version, deleted=True).schema)

        what = f"version {version} of subject {subject}, to which schema id {schema_id} refers"
        found = self._requests.send(what, request)
        assert found is not None
        return Referenced(found.schema_str or "", _names(found))

    def _version(self, schema_id: str, subject: str, schema: Schema) -> int | None:
        """The version of the schema within the subject: the newest one, if it was deleted and registered again."""
        what = f"versions of schema id {schema_id} in subject {subject}"
        if not _NUMBER.fullmatch(schema_id):
            return self._requests.send(what, lambda client: _lookup(client, subject, schema), absent=_UNREGISTERED)

        def request(client: SchemaRegistryClient) -> list[int]:
            pairs = client.get_schema_versions(int(schema_id), deleted=True)
            return [_number(pair.version) for pair in pairs if unqualified(pair.subject or "") == subject]

        return max(self._requests.send(what, request, absent=_UNREGISTERED) or (), default=None)


def _complete(schema: Schema) -> Schema:
    """Raises ValueError if an answer lacks the schema, or has values of other types: the ledger would keep them."""
    references = schema.references or ()
    texts = [schema.schema_str, schema.schema_type or "", *(each.name for each in references)]
    texts += [each.subject for each in references]
    if not all(map(is_text, texts)) or not all(isinstance(each.version, int) for each in references):
        raise ValueError("no schema")
    return schema


def _by_guid(client: SchemaRegistryClient, guid: str) -> Schema | SchemaRegistryError:
    """The error if the registry does not have the endpoint, as older registries."""
    try:
        return _complete(client.get_schema_by_guid(guid))
    except SchemaRegistryError as error:
        if errors.is_missing_endpoint(error):
            return error
        raise


def _lookup(client: SchemaRegistryClient, subject: str, schema: Schema) -> int:
    return _number(client.lookup_schema(subject, schema, deleted=True).version)


def _number(version: object) -> int:
    """Raises ValueError if an answer has no version."""
    if not isinstance(version, int) or isinstance(version, bool) or version not in _VERSIONS:
        raise ValueError("no version")
    return version


def _names(schema: Schema) -> list[Reference]:
    return [Reference(str(each.name), str(each.subject), int(each.version or 0)) for each in schema.references or ()]
