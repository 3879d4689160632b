"""The rules of `spec.kafka.login`."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import ABSENT, accepted, spec_errors

LOGIN = "spec.kafka.login"
CA = {"secret": "kafka-ca", "key": "ca.crt"}


URL = "https://login.example.com/oauth2/token"
ROLE = {"arn": "arn:aws:iam::123456789012:role/kafka", "externalId": "s3sink", "region": "eu-central-1"}
TYPES = ["Scram512", "Scram256", "Plain", "Certificate", "OAuth"]


def login(kind: str, **more: object) -> dict[str, object]:
    url = {"tokenUrl": URL} if kind == "OAuth" else {}
    return {LOGIN: {"type": kind, "credentials": {"secret": "kafka-login"}, **url, **more}}


@pytest.mark.parametrize("kind", TYPES)
def test_a_login_needs_credentials(kind: str) -> None:
    without = login(kind), {f"{LOGIN}.credentials": ABSENT}
    assert spec_errors(*without) == [f"{LOGIN}.credentials: is missing: the type {kind} needs it"]
    accepted(login(kind, caSecret=CA))


def test_a_login_of_an_unknown_type_names_the_known_ones() -> None:
    [error] = spec_errors(login("Scram"))
    assert error.startswith(f"{LOGIN}.type: Scram is not one of {', '.join([*TYPES, 'MskIam'])}")


def test_a_certificate_has_no_user_and_needs_tls() -> None:
    types = "only with Scram512, Scram256, Plain"
    assert spec_errors(login("Certificate", username="alice", insecure=True)) == [
        f"{LOGIN}.username: has no effect with the type Certificate, {types}: remove it",
        f"{LOGIN}.insecure: has no effect with the type Certificate, {types}, OAuth: remove it",
    ]


def test_tokens_need_the_url_of_their_endpoint() -> None:
    assert spec_errors(login("OAuth"), {f"{LOGIN}.tokenUrl": ABSENT}) == [
        f"{LOGIN}.tokenUrl: is missing: the type OAuth needs it"
    ]


@pytest.mark.parametrize("field", ["clientId", "tokenUrl", "scope", "tokenCaSecret"])
def test_fields_of_tokens_have_no_effect_with_other_types(field: str) -> None:
    value = CA if field == "tokenCaSecret" else URL
    assert spec_errors(login("Plain", **{field: value})) == [
        f"{LOGIN}.{field}: has no effect with the type Plain, only with OAuth: remove it"
    ]


def test_iam_needs_nothing_and_has_no_secret() -> None:
    accepted({LOGIN: {"type": "MskIam"}})
    accepted({LOGIN: {"type": "MskIam", "assumeRole": ROLE, "caSecret": CA}})
    assert spec_errors(login("MskIam", insecure=True)) == [
        f"{LOGIN}.credentials: has no effect with the type MskIam, only with {', '.join(TYPES)}: remove it",
        f"{LOGIN}.insecure: has no effect with the type MskIam, only with Scram512, Scram256, Plain, OAuth: remove it",
    ]


@pytest.mark.parametrize("field", ["assumeRole", "profile"])
def test_fields_of_iam_have_no_effect_with_other_types(field: str) -> None:
    assert spec_errors(login("Plain", **{field: ROLE if field == "assumeRole" else "msk"})) == [
        f"{LOGIN}.{field}: has no effect with the type Plain, only with MskIam: remove it"
    ]


def test_a_role_is_assumed_by_the_sink_or_by_a_profile() -> None:
    assert spec_errors({LOGIN: {"type": "MskIam", "assumeRole": ROLE, "profile": "msk"}}) == [
        f"{LOGIN}.profile: cannot be combined with assumeRole: set role_arn in the profile, or remove one of them"
    ]


def test_a_token_endpoint_without_tls_is_allowed_explicitly_or_on_loopback() -> None:
    plain = "http://login.example.com/token"
    assert spec_errors(login("OAuth", tokenUrl=plain)) == [
        f"{LOGIN}.tokenUrl: {plain} is not encrypted: use https://, or set spec.kafka.login.insecure: true"
    ]
    accepted(login("OAuth", tokenUrl=plain, insecure=True))
    accepted(login("OAuth", tokenUrl="http://127.0.0.1:8080/token", caSecret=CA))


def test_authorities_of_a_token_endpoint_without_tls_have_no_effect() -> None:
    assert spec_errors(login("OAuth", tokenUrl="http://localhost/token", tokenCaSecret=CA)) == [
        f"{LOGIN}.tokenCaSecret: has no effect: spec.kafka.login.tokenUrl is not encrypted; remove it"
    ]


def test_authorities_have_no_effect_without_tls() -> None:
    assert spec_errors(login("Plain", insecure=True, caSecret=CA)) == [
        f"{LOGIN}.caSecret: has no effect with insecure: true: remove one of them"
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Scram512", "security.protocol"),
        ("Plain", "sasl.mechanism"),
        ("Plain", "security.protocol"),
        ("OAuth", "sasl.oauthbearer.token.endpoint.url"),
        ("Certificate", "security.protocol"),
        ("Certificate", "ssl.keystore.location"),
    ],
)
def test_a_property_is_set_by_the_login_or_in_properties(kind: str, name: str) -> None:
    assert spec_errors(login(kind), {"spec.kafka.properties": {name: "a"}}) == [
        f"spec.kafka.properties[{name}]: is set by spec.kafka.login, of type {kind}: remove it here, or use properties "
        "instead of login"
    ]


def test_a_property_is_set_by_the_login_or_from_a_secret() -> None:
    secret = {"name": "sasl.jaas.config", "secret": "login", "key": "jaas"}
    [error] = spec_errors(login("Plain"), {"spec.kafka.propertySecrets": [secret]})
    assert error.startswith("spec.kafka.propertySecrets[0].name: sasl.jaas.config is set by spec.kafka.login")


def test_properties_for_tls_are_set_beside_a_login_without_authorities_of_its_own() -> None:
    trusted = {"spec.kafka.properties": {"ssl.truststore.location": "/etc/ca.pem", "ssl.truststore.type": "PEM"}}
    accepted(login("Scram512"), trusted)
    assert len(spec_errors(login("Scram512", caSecret=CA), trusted)) == 2


def test_other_properties_are_set_beside_a_login() -> None:
    password = {"name": "ssl.key.password", "secret": "login", "key": "password"}
    accepted(login("Certificate"), {"spec.kafka.propertySecrets": [password]})
    accepted(login("Scram512"), {"spec.kafka.properties": {"client.rack": "a", "ssl.protocol": "TLSv1.3"}})
