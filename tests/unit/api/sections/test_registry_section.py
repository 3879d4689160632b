"""The section of a manifest for a schema registry."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from sink_job.api.enums import ApicurioIdType, RegistryType, SchemaIdLocation, SubjectNameStrategy
from sink_job.api.sections.registry_section import RegistrySpec, check_registry
from tests.unit.api.manifests import spec_errors

URL = "https://registry.example.com:8081"
ROLE = "arn:aws:iam::123456789012:role/schemas"
GLUE: dict[str, Any] = {"type": "Glue", "url": None, "region": "eu-central-1"}
HERE = ("spec", "format", "registry")


def registry(**fields: Any) -> RegistrySpec:
    return RegistrySpec.model_validate({"url": [URL], **fields})


def errors(**fields: Any) -> list[str]:
    """The errors of a section: of its fields, or else of their combination."""
    try:
        return [str(error) for error in check_registry(registry(**fields), HERE)]
    except ValidationError as error:
        return [each["msg"].removeprefix("Value error, ") for each in error.errors()]


def test_a_url_is_enough() -> None:
    found = registry()
    assert (found.type, found.subjects, found.id_in) == (
        RegistryType.CONFLUENT,
        SubjectNameStrategy.TOPIC_NAME,
        SchemaIdLocation.EITHER,
    )
    assert errors() == []


@pytest.mark.parametrize(
    "url", [URL, "https://registry.example.com/apis/ccompat/v7", "http://127.0.0.1:8081", "http://localhost:8081/"]
)
def test_urls_with_tls_or_on_loopback_are_accepted(url: str) -> None:
    assert errors(url=[url]) == []


def test_plain_http_has_to_be_allowed() -> None:
    assert errors(url=["http://registry:8081"], insecure=True) == []
    assert errors(url=[URL, "http://registry:8081"]) == [
        "spec.format.registry.url[1]: http://registry:8081 is not encrypted: use https://, or set "
        "spec.format.registry.insecure: true"
    ]


def test_a_url_is_listed_once() -> None:
    assert errors(url=[URL, URL]) == [f"spec.format.registry.url[1]: {URL} is listed twice"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("registry:8081", "is not the URL of a schema registry: use https://host or https://host:port/path"),
        ("ftp://registry", "is not the URL of a schema registry"),
        ("https://registry:99999", "is not the URL of a schema registry"),
        ("https://a:8081,https://b:8081", "is not the URL of a schema registry"),
        ("https://a,b", "list several URLs separately"),
        ("https://registry?x=1", "without a query"),
        ("https://registry/" + 500 * "x", "is longer than 512 characters"),
    ],
)
def test_other_urls_are_rejected(url: str, message: str) -> None:
    assert [message in each for each in errors(url=[url])] == [True]


def test_credentials_in_a_url_are_rejected_and_not_shown() -> None:
    (message,) = errors(url=["https://user:hunter2@registry:8081"])
    assert message == (
        "contains credentials: put them into a secret and reference it in spec.format.registry.credentials"
    )


def test_a_registry_has_a_url() -> None:
    assert errors(url=[]) != []


def test_the_kind_of_apicurios_ids_is_chosen() -> None:
    found = registry(type="Apicurio", useId="GlobalId", url=["https://registry/apis/registry/v3"])
    assert errors(type="Apicurio", useId="GlobalId") == []
    assert found.wire_format().use_id is ApicurioIdType.GLOBAL_ID


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"type": "Apicurio", "subjects": "RecordName"},
            "spec.format.registry.subjects: has no effect with the type Apicurio, only with Confluent: remove it",
        ),
        (
            {"useId": "ContentId"},
            "spec.format.registry.useId: has no effect with the type Confluent, only with Apicurio: remove it",
        ),
        (
            {"region": "eu-central-1"},
            "spec.format.registry.region: has no effect with the type Confluent, only with Glue: remove it",
        ),
        (
            {"type": "Apicurio", "name": "travel"},
            "spec.format.registry.name: has no effect with the type Apicurio, only with Glue: remove it",
        ),
        (
            {"assumeRole": {"arn": ROLE}},
            "spec.format.registry.assumeRole: has no effect with the type Confluent, only with Glue: remove it",
        ),
        (
            {**GLUE, "clientSecret": {"secret": "client"}},
            "spec.format.registry.clientSecret: has no effect with the type Glue, only with Confluent and Apicurio: "
            "remove it",
        ),
        (
            {**GLUE, "subjects": "RecordName"},
            "spec.format.registry.subjects: has no effect with the type Glue, only with Confluent: remove it",
        ),
        (
            {**GLUE, "idIn": "Header"},
            "spec.format.registry.idIn: Header is not possible with the type Glue: its serializers write ids into "
            "values; remove it",
        ),
        (
            {**GLUE, "url": [URL, f"{URL}/b"]},
            "spec.format.registry.url: lists several URLs: the type Glue has one endpoint",
        ),
        (
            {**GLUE, "region": None},
            "spec.format.registry.region: is missing: the type Glue needs it, for example eu-central-1",
        ),
    ],
)
def test_fields_of_another_type_are_rejected(fields: dict[str, str], message: str) -> None:
    assert errors(**fields) == [message]


def test_glue_needs_no_url() -> None:
    assert errors(**GLUE, name="travel", assumeRole={"arn": ROLE, "externalId": "s3sink"}, idIn="Value") == []


@pytest.mark.parametrize("type_", ["Confluent", "Apicurio"])
def test_the_other_types_need_a_url(type_: str) -> None:
    assert errors(type=type_, url=None) == [f"spec.format.registry.url: is missing: the type {type_} needs it"]


@pytest.mark.parametrize(
    "arn",
    [ROLE, "arn:aws-cn:iam::123456789012:role/path/to/x", "arn:aws-us-gov:iam::123456789012:role/a+b=c,d.e@f_g-h"],
)
def test_roles_of_all_partitions_of_aws_are_accepted(arn: str) -> None:
    assert errors(**GLUE, assumeRole={"arn": arn}) == []


@pytest.mark.parametrize("arn", ["schemas", "arn:aws:iam::1:role/x", "arn:aws:iam::123456789012:user/x", f"{ROLE} "])
def test_other_arns_are_rejected(arn: str) -> None:
    assert errors(**GLUE, assumeRole={"arn": arn}) == [
        "is not the ARN of a role: use arn:aws:iam::123456789012:role/name"
    ]


@pytest.mark.parametrize("external_id", ["x", "a b", "ä" * 3])
def test_other_external_ids_are_rejected(external_id: str) -> None:
    (message,) = errors(**GLUE, assumeRole={"arn": ROLE, "externalId": external_id})
    assert message.startswith("is not an external id: AWS allows")


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 256])
def test_other_names_of_registries_are_rejected(name: str) -> None:
    (message,) = errors(**GLUE, name=name)
    assert message.startswith("is not the name of a registry: AWS Glue allows")


def manifest_errors(registry: dict[str, object]) -> list[str]:
    return spec_errors({"spec.format": {"converter": "Avro", "registry": registry}})


@pytest.mark.parametrize("url", ["https://user:hunter2@registry:8081", "registry:8081"])
def test_an_invalid_url_is_not_also_missing(url: str) -> None:
    (message,) = manifest_errors({"url": [url]})
    assert message.startswith("spec.format.registry.url[0]: ")


@pytest.mark.parametrize("key", ["schema.registry.url", "value.converter.schema.registry.url"])
def test_the_converters_key_of_the_url_leads_to_the_field(key: str) -> None:
    (message,) = manifest_errors({key: "https://registry:8081"})
    assert message == f"spec.format.registry[{key}]: is not a field of spec.format.registry; did you mean url?"
