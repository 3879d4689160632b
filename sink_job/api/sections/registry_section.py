"""The section of a manifest for a schema registry (`spec.format.registry`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import StrictBool

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import ApicurioIdType, RegistryType, SchemaIdLocation, SubjectNameStrategy, UnknownIds
from sink_job.api.field_errors import FieldError, Path, shown
from sink_job.api.field_types import Region, TextValidator, is_loopback
from sink_job.api.sections.aws_access import AssumeRoleSpec
from sink_job.api.sections.secret_refs import SecretKey, SecretRef


def check_registry_url(text: str) -> None:
    """Checks the URL of a schema registry: scheme, host and optionally a path; no credentials, query and fragment."""
    if len(text) > 512:
        raise ValueError("is longer than 512 characters")
    message = "is not the URL of a schema registry: use https://host or https://host:port/path"
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError(message) from None
    if not text.startswith(("http://", "https://")) or not url.hostname or port == 0:
        raise ValueError(message)
    if url.username is not None or url.password is not None:
        raise ValueError(
            "contains credentials: put them into a secret and reference it in spec.format.registry.credentials"
        )
    if "," in text or any(character.isspace() or not character.isprintable() for character in text):
        raise ValueError(f"{message}; list several URLs separately")
    if url.query or url.fragment:
        raise ValueError(f"{message}, without a query")


def check_registry_name(text: str) -> None:
    """Checks the name of a registry of AWS Glue."""
    if not re.fullmatch(_REGISTRY_NAME, text):
        raise ValueError("is not the name of a registry: AWS Glue allows up to 255 letters, digits and - _ $ # .")


_REGISTRY_NAME: Final = r"[a-zA-Z0-9_\x24#.-]{1,255}"
RegistryName = Annotated[
    str, TextValidator(check_registry_name, {"pattern": f"^{_REGISTRY_NAME}$", "minLength": 1, "maxLength": 255})
]
RegistryUrl = Annotated[str, TextValidator(check_registry_url, {"pattern": "^https?://", "maxLength": 512})]


class RegistrySpec(SpecModel):
    """The schema registry of the records. Only the driver connects to it."""

    type: RegistryType = RegistryType.CONFLUENT
    """API of the registry. Confluent: also for Karapace, Redpanda, and Apicurio's compatible API. Apicurio: its own
    API, version 3 or 2. Glue: AWS Glue Schema Registry."""
    url: Annotated[
        list[RegistryUrl] | None,
        description(
            key="value.converter.schema.registry.url",
            example=["https://registry.example.com:8081"],
            min_length=1,
            max_length=10,
        ),
    ] = None
    """URLs of the registry, tried in turn. http:// needs insecure: true, except on loopback. For type Apicurio they end
    in /apis/registry/v3 or /apis/registry/v2. For type Glue, the endpoint; default: that of the region."""
    region: Annotated[Region | None, description(key="value.converter.region", example="eu-central-1")] = None
    """Region of AWS. Required by type Glue, and only for it."""
    name: Annotated[
        RegistryName | None, description(key="value.converter.registry.name", example="flights-registry")
    ] = None
    """Name of the registry in AWS Glue; only for type Glue. A schema of another registry stops the sink. Default: all
    registries of the account and region."""
    assume_role: AssumeRoleSpec | None = None
    """IAM role for requests to AWS Glue, for example of another account; only for type Glue."""
    credentials: Annotated[
        SecretRef | None,
        description(
            key="value.converter.basic.auth.user.info, value.converter.bearer.auth.*",
            example={"secret": "registry-login"},
        ),
    ] = None
    """Secret with username and password, with token (bearer token), or with clientId, clientSecret and tokenUrl, and
    optionally scope (OAuth client credentials). logicalCluster and identityPool are for Confluent Cloud. For type Glue:
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and optionally AWS_SESSION_TOKEN; default: the credential chain of AWS."""
    ca_secret: Annotated[
        SecretKey | None,
        description(
            key="value.converter.schema.registry.ssl.truststore.*",
            example={"secret": "registry-ca", "key": "ca.crt"},
        ),
    ] = None
    """CA certificates (PEM) to verify the registry's certificate."""
    client_secret: Annotated[
        SecretRef | None,
        description(
            key="value.converter.schema.registry.ssl.keystore.*", example={"secret": "registry-client-certificate"}
        ),
    ] = None
    """Secret with the client certificate for mutual TLS: tls.crt and tls.key (PEM, without a password)."""
    unknown_ids: UnknownIds = UnknownIds.FAIL
    """What happens to a record whose schema id the registry does not know. Fail: the sink asks for a minute, because a
    replica of the registry may lag behind, and then stops with the reason SchemaNotFound, to be started again. Reject:
    the record is a data error, which errors.tolerance drops or not."""
    insecure: StrictBool = False
    """Allow a registry without TLS. Schemas and credentials are then not encrypted."""
    subjects: Annotated[SubjectNameStrategy, description(key="value.converter.value.subject.name.strategy")] = (
        SubjectNameStrategy.TOPIC_NAME
    )
    """Name of a record's subject, within which versions count; for type Confluent. TopicName: <topic>-value.
    RecordName: the full name of the record's schema. TopicRecordName: <topic>-<full name>."""
    use_id: Annotated[ApicurioIdType | None, description(key="value.converter.apicurio.registry.use-id")] = None
    """Kind of the ids in values; only for type Apicurio. ContentId (default): default of Apicurio's serializers 3.x.
    GlobalId: default of those of 2.x. Both kinds are read from headers, whose names distinguish them."""
    id_in: Annotated[SchemaIdLocation, description(key="value.converter.value.schema.id.deserializer")] = (
        SchemaIdLocation.EITHER
    )
    """Location of the schema id: in the value, in a header, or in the header if it exists and else in the value. The
    headers are __value_schema_id, and for type Apicurio apicurio.value.contentId and apicurio.value.globalId. Type Glue
    has no headers."""

    def wire_format(self) -> WireFormatSettings:
        """The settings that determine how values are read."""
        return WireFormatSettings(type=self.type, subjects=self.subjects, id_in=self.id_in, use_id=self.use_id)


class WireFormatSettings(SpecModel):
    """How the schema of a value is found. See RegistrySpec."""

    type: RegistryType
    subjects: SubjectNameStrategy
    id_in: SchemaIdLocation
    use_id: ApicurioIdType | None = None


def check_registry(spec: RegistrySpec, here: Path) -> Iterator[FieldError]:
    """The errors in the combination of fields of the registry at the path `here`."""
    urls = spec.url or []
    if not urls and spec.type is not RegistryType.GLUE:
        yield FieldError(
            (*here, "url"), f"is missing: the type {spec.type} needs it", ((*here, "type"), (*here, "url"))
        )
    for at, url in enumerate(urls):
        path: Path = (*here, "url", at)
        if url.startswith("http://") and not spec.insecure and not is_loopback(url):
            message = f"{shown(path, url)} is not encrypted: use https://, or set {'.'.join(map(str, here))}.insecure"
            yield FieldError(path, f"{message}: true", ((*here, "insecure"),))
        if url in urls[:at]:
            yield FieldError(path, f"{shown(path, url)} is listed twice")
    yield from _of_glue(spec, here)
    yield from _of_other_types(spec, here)


def _of_glue(spec: RegistrySpec, here: Path) -> Iterator[FieldError]:
    """The errors of the type Glue."""
    if spec.type is not RegistryType.GLUE:
        return
    of_type = ((*here, "type"),)
    if spec.region is None:
        yield FieldError((*here, "region"), "is missing: the type Glue needs it, for example eu-central-1", of_type)
    if len(spec.url or ()) > 1:
        yield FieldError((*here, "url"), "lists several URLs: the type Glue has one endpoint", of_type)
    if spec.id_in is SchemaIdLocation.HEADER:
        message = "Header is not possible with the type Glue: its serializers write ids into values; remove it"
        yield FieldError((*here, "idIn"), message, of_type)


def _of_other_types(spec: RegistrySpec, here: Path) -> Iterator[FieldError]:
    """The errors of fields that belong to another type of registry."""
    for name, is_set, types in (
        ("subjects", spec.subjects is not SubjectNameStrategy.TOPIC_NAME, (RegistryType.CONFLUENT,)),
        ("useId", spec.use_id is not None, (RegistryType.APICURIO,)),
        ("clientSecret", spec.client_secret is not None, (RegistryType.CONFLUENT, RegistryType.APICURIO)),
        ("region", spec.region is not None, (RegistryType.GLUE,)),
        ("name", spec.name is not None, (RegistryType.GLUE,)),
        ("assumeRole", spec.assume_role is not None, (RegistryType.GLUE,)),
    ):
        if is_set and spec.type not in types:
            message = f"has no effect with the type {spec.type}, only with {' and '.join(types)}: remove it"
            yield FieldError((*here, name), message, ((*here, "type"),))
