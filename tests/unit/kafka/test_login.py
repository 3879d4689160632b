"""The properties that `spec.kafka.login` replaces, and the protection of its secrets."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from devtools.certificates import self_signed
from sink_job.api.enums import LoginType
from sink_job.api.errors import InvalidCredentials, SecretNotFound
from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.kafka.login import Login, jaas, login_secrets
from sink_job.kafka.properties import KafkaProperties
from tests.support.login_broker import write_secret

URL = "https://login.example.com/oauth2/token"
CA = {"secret": "kafka-ca", "key": "ca.crt"}


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, Path]:
    """The directories of Secrets, with all keys of all types."""
    pair = self_signed(tmp_path)
    keys = {"username": "alice", "password": "wonderland\n", "clientId": "flights", "clientSecret": "hush"}
    certificate = {"tls.crt": pair.certificate.read_text(), "tls.key": pair.key.read_text()}
    write_secret(tmp_path / "login", keys | certificate)
    write_secret(tmp_path / "ca", {"ca.crt": pair.certificate.read_text()})
    return {"kafka-login": tmp_path / "login", "kafka-ca": tmp_path / "ca"}


def kafka(kind: str, **more: object) -> KafkaSpec:
    secret = {} if kind == "MskIam" else {"credentials": {"secret": "kafka-login"}, "tokenUrl": URL}
    login = {"type": kind, **secret, **more}
    return KafkaSpec.model_validate({"bootstrapServers": "kafka:9092", "topics": ["t"], "login": login})


def expanded(kind: str, secrets: dict[str, Path], **more: object) -> dict[str, str]:
    found = KafkaProperties.of(kafka(kind, **more), secrets).client()
    return {name: value for name, value in found.items() if name not in ("bootstrap.servers", "isolation.level")}


def test_a_login_with_scram_is_four_words_of_kafka(secrets: dict[str, Path]) -> None:
    assert expanded("Scram512", secrets) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="alice" password="wonderland";',
    }
    assert expanded("Scram256", secrets)["sasl.mechanism"] == "SCRAM-SHA-256"


def test_a_login_without_tls_is_encrypted_nowhere(secrets: dict[str, Path]) -> None:
    found = expanded("Plain", secrets, insecure=True)
    assert found["security.protocol"] == "SASL_PLAINTEXT"
    assert found["sasl.jaas.config"].startswith("org.apache.kafka.common.security.plain.PlainLoginModule required ")


def test_the_user_of_the_manifest_precedes_the_one_of_the_secret(secrets: dict[str, Path]) -> None:
    assert 'username="bob"' in expanded("Plain", secrets, username="bob")["sasl.jaas.config"]


def test_certificates_are_passed_as_text(secrets: dict[str, Path]) -> None:
    found = expanded("Certificate", secrets, caSecret=CA)
    assert {name for name in found if found[name].startswith("-----BEGIN")} == {
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.certificates",
    }
    assert {found["security.protocol"], found["ssl.keystore.type"], found["ssl.truststore.type"]} == {"SSL", "PEM"}


def test_a_login_with_tokens_names_its_endpoint_to_the_client_and_to_its_jvm(secrets: dict[str, Path]) -> None:
    properties = KafkaProperties.of(kafka("OAuth", scope="copy"), secrets)
    module = "org.apache.kafka.common.security.oauthbearer"
    assert expanded("OAuth", secrets, scope="copy") == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{module}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.jaas.config": f"{module}.OAuthBearerLoginModule required "
        'clientId="flights" clientSecret="hush" scope="copy";',
    }
    assert properties.java_options == (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={URL}",)
    assert KafkaProperties.of(kafka("Plain", tokenUrl=None), secrets).java_options == ()


def test_a_login_with_iam_has_the_credential_chain_of_aws(secrets: dict[str, Path]) -> None:
    assert expanded("MskIam", {}) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    }


@pytest.mark.parametrize(
    ("field", "value", "options"),
    [
        (
            "assumeRole",
            {"arn": "arn:aws:iam::123456789012:role/a", "externalId": "ext", "region": "cn-north-1"},
            'awsRoleArn="arn:aws:iam::123456789012:role/a" awsRoleSessionName="s3sink" awsRoleExternalId="ext" '
            'awsStsRegion="cn-north-1"',
        ),
        ("profile", "msk", 'awsProfileName="msk"'),
    ],
    ids=["role", "profile"],
)
def test_a_role_or_a_profile_is_used_instead_of_the_chain_and_not_before_it(
    field: str, value: object, options: str
) -> None:
    found = expanded("MskIam", {}, **{field: value})["sasl.jaas.config"]
    assert found == f'software.amazon.msk.auth.iam.IAMLoginModule required {options} awsAddDefaultProviders="false";'


def test_classes_of_msk_are_needed_by_a_login_or_by_properties_that_name_them() -> None:
    by_properties = {"properties": {"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"}}
    plain = {"bootstrapServers": "kafka:9092", "topics": ["t"]}
    assert KafkaProperties.of(kafka("MskIam"), {}).needs_msk_iam
    assert KafkaProperties.of(KafkaSpec.model_validate(plain | by_properties), {}).needs_msk_iam
    assert not KafkaProperties.of(KafkaSpec.model_validate(plain), {}).needs_msk_iam


def test_the_extensions_of_confluent_cloud_are_keys_of_the_secret(secrets: dict[str, Path]) -> None:
    (secrets["kafka-login"] / "logicalCluster").write_text("lkc-1")
    (secrets["kafka-login"] / "identityPool").write_text("pool-2")
    options = expanded("OAuth", secrets, clientId="other")["sasl.jaas.config"]
    assert 'clientId="other"' in options
    assert options.endswith('extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";')


def test_authorities_of_the_token_endpoint_are_options_of_the_login_in_one_line(secrets: dict[str, Path]) -> None:
    options = expanded("OAuth", secrets, tokenCaSecret=CA)["sasl.jaas.config"]
    assert "\n" not in options
    assert 'ssl.truststore.type="PEM" ssl.truststore.certificates="-----BEGIN CERTIFICATE-----\\n' in options


@pytest.mark.parametrize("kind", LoginType)
def test_a_login_sets_no_property_that_the_manifest_may_set(kind: LoginType, secrets: dict[str, Path]) -> None:
    login = kafka(kind, caSecret=CA).login
    assert login is not None
    assert set(Login.of(login, secrets).properties) <= set(login.properties())


@pytest.mark.parametrize(
    ("value", "quoted"),
    [('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"'), ("a;b = 'c'", "\"a;b = 'c'\""), ("a\nb", r'"a\nb"')],
    ids=["a quote", "a backslash", "a semicolon", "a line break"],
)
def test_values_are_quoted_as_jaas_reads_them(value: str, quoted: str) -> None:
    assert jaas("Module", {"password": value}) == f"Module required password={quoted};"


@pytest.mark.parametrize(
    ("kind", "key"),
    [("Plain", "username"), ("Scram512", "password"), ("Certificate", "tls.crt"), ("OAuth", "clientSecret")],
)
def test_the_error_for_a_missing_key_names_it(secrets: dict[str, Path], kind: str, key: str) -> None:
    (secrets["kafka-login"] / key).unlink()
    message = rf"spec\.kafka\.login\.credentials: the Secret kafka-login has no key {key}, which the type {kind} needs"
    with pytest.raises(SecretNotFound, match=message):
        expanded(kind, secrets)


def test_the_error_for_missing_authorities_names_the_key(secrets: dict[str, Path]) -> None:
    with pytest.raises(SecretNotFound, match=r"login\.caSecret: the Secret kafka-ca has no key other"):
        expanded("Plain", secrets, caSecret={"secret": "kafka-ca", "key": "other"})


def test_the_error_for_a_secret_without_a_directory_names_the_option() -> None:
    with pytest.raises(SecretNotFound, match=r"login\.credentials: the Secret kafka-login is not mounted.*--secret"):
        expanded("Plain", {})


def test_a_password_of_two_lines_is_rejected_without_being_shown(secrets: dict[str, Path]) -> None:
    (secrets["kafka-login"] / "password").write_text("wonder\nland")
    with pytest.raises(InvalidCredentials, match="the key password of the Secret kafka-login contains a line") as error:
        expanded("Plain", secrets)
    assert "land" not in str(error.value).replace("kafka-login", "")


def test_a_key_that_kafka_cannot_read_is_rejected_with_the_command_that_converts_it(secrets: dict[str, Path]) -> None:
    key = (secrets["kafka-login"] / "tls.key").read_text().replace("BEGIN PRIVATE", "BEGIN RSA PRIVATE")
    (secrets["kafka-login"] / "tls.key").write_text(key)
    with pytest.raises(InvalidCredentials, match="openssl pkcs8 -topk8 -nocrypt") as error:
        expanded("Certificate", secrets)
    assert key.splitlines()[1] not in str(error.value)


def test_an_encrypted_key_is_passed_on(secrets: dict[str, Path]) -> None:
    key = (secrets["kafka-login"] / "tls.key").read_text().replace(" PRIVATE", " ENCRYPTED PRIVATE")
    (secrets["kafka-login"] / "tls.key").write_text(key)
    assert expanded("Certificate", secrets)["ssl.keystore.key"] == key.strip()


def test_a_secret_is_removed_from_messages_also_as_jaas_writes_it(secrets: dict[str, Path]) -> None:
    (secrets["kafka-login"] / "password").write_text('wonder"land')
    redact = KafkaProperties.of(kafka("Plain"), secrets).redact
    assert "land" not in redact('the password wonder"land, written password="wonder\\"land"')


def test_words_of_a_login_that_are_no_secrets_are_left_in_messages(secrets: dict[str, Path]) -> None:
    message = "s3sink: the client flights of alice at https://login.example.com/oauth2/token is false"
    for kind, more in (("MskIam", {"profile": "flights"}), ("OAuth", {}), ("Plain", {})):
        assert KafkaProperties.of(kafka(kind, **more), secrets).redact(message) == message


def test_the_lines_of_a_key_are_secrets(secrets: dict[str, Path]) -> None:
    login = kafka("Certificate").login
    assert login is not None
    line = (secrets["kafka-login"] / "tls.key").read_text().splitlines()[1]
    assert line in login_secrets(login, secrets)


def test_the_header_of_a_token_request_is_a_secret(secrets: dict[str, Path]) -> None:
    login = kafka("OAuth").login
    assert login is not None
    assert b64encode(b"flights:hush").decode() in login_secrets(login, secrets)


def test_a_login_that_cannot_be_read_has_no_secrets() -> None:
    login = kafka("Plain").login
    assert login is not None
    assert login_secrets(login, {}) == ()
