"""Redaction of secrets in the output of the process."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

import pytest

from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.driver.secret_registry import Redactor, secrets_of
from tests.support.login_proxy import PASSWORD, USER, login_secret

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def sink_with(kafka: str, s3: str = "", converter: str = "converter: Json", tables: str = "[]") -> Sink:
    return load_sink(f"""
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {{name: flights}}
spec:
  kafka: {{bootstrapServers: "localhost:9092", topics: [flights], {kafka}}}
  rotation: {{flushSize: 100}}
  format: {{{converter}}}
  s3: {{bucket: archive, {s3}}}
  tables: {tables}
""")


def test_a_hidden_value_is_redacted_everywhere() -> None:
    redact = Redactor()
    redact.hide(["hunter22", "hunter22-longer"])
    assert redact("a hunter22, b hunter22-longer.") == "a [hidden], b [hidden]."


def test_short_texts_are_not_redacted() -> None:
    redact = Redactor()
    redact.hide(["", " ", "abc"])
    assert redact("abc is not hidden") == "abc is not hidden"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ('username="alice" password="s3 cr,et";', 'username="alice" password=[hidden];'),
        ("password='s3cret' serviceName=kafka", "password=[hidden] serviceName=kafka"),
        ("ssl.key.password = changeit\n\tssl.protocol = x", "ssl.key.password = [hidden]\n\tssl.protocol = x"),
        ('clientSecret="abc\\"def" scope="x"', 'clientSecret=[hidden] scope="x"'),
        ("aws_session_token=abc&x=y", "aws_session_token=[hidden]&x=y"),
        ("give --secret minio=DIRECTORY", "give --secret minio=DIRECTORY"),
        ("s3.credentials.secret: s3-keys is not there", "s3.credentials.secret: s3-keys is not there"),
    ],
    ids=["jaas", "single quotes", "java properties", "an escaped quote", "a query", "our own advice", "a field's path"],
)  # fmt: skip
def test_values_with_the_name_of_a_secret_are_redacted(text: str, safe: str) -> None:
    assert Redactor()(text) == safe


def test_the_password_of_a_jaas_login_is_redacted_and_the_user_is_not(tmp_path: Path) -> None:
    (tmp_path / "jaas").write_text(f'{JAAS} username="kafka" password="pass;word";\n')
    sink = sink_with("propertySecrets: [{name: sasl.jaas.config, secret: login, key: jaas}]")
    assert secrets_of(sink, {"login": tmp_path}, {}) == ["pass;word"]


def test_the_whole_value_of_a_secret_property_is_redacted(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("changeit\n")
    sink = sink_with("propertySecrets: [{name: ssl.keystore.password, secret: login, key: password}]")
    assert secrets_of(sink, {"login": tmp_path}, {}) == ["changeit"]


def test_the_secret_access_key_is_redacted_and_the_access_key_id_is_not(tmp_path: Path) -> None:
    for key, value in (("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "sk"), ("AWS_SESSION_TOKEN", "st")):
        (tmp_path / key).write_text(value)
    assert secrets_of(sink_with("", "credentials: {secret: keys}"), {"keys": tmp_path}, {}) == ["sk", "st"]


def test_the_keys_of_the_ledgers_bucket_are_redacted(tmp_path: Path) -> None:
    for key, value in (("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "of-the-ledger")):
        (tmp_path / key).write_text(value)
    sink = sink_with("", "ledger: {bucket: ledgers, credentials: {secret: keys}}")
    assert secrets_of(sink, {"keys": tmp_path}, {}) == ["of-the-ledger"]


def test_the_credentials_of_a_registry_are_redacted_and_the_user_is_not(tmp_path: Path) -> None:
    for key, value in (("username", "reader"), ("password", "of-the-reader"), ("token", "bearer")):
        (tmp_path / key).write_text(value)
    registry = "registry: {url: ['https://registry'], credentials: {secret: login}}"
    sink = sink_with("", converter=f"converter: Avro, {registry}")
    assert secrets_of(sink, {"login": tmp_path}, {}) == ["of-the-reader", "bearer"]


def test_the_login_of_a_catalog_is_redacted_also_as_a_header(tmp_path: Path) -> None:
    for key, value in (("username", "reader"), ("password", "of-the-reader"), ("clientSecret", "of-the-client")):
        (tmp_path / key).write_text(value)
    table = "{name: lake.flights, catalog: {type: Rest, uri: 'https://c', credentials: {secret: login}}}"
    converter = "converter: ConnectJson, output: Parquet"
    found = secrets_of(sink_with("", converter=converter, tables=f"[{table}]"), {"login": tmp_path}, {})
    assert found == ["of-the-reader", "of-the-client", base64.b64encode(b"reader:of-the-reader").decode()]


def test_the_keys_of_a_registry_of_aws_glue_are_redacted(tmp_path: Path) -> None:
    for key, value in (("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "sk"), ("AWS_SESSION_TOKEN", "st")):
        (tmp_path / key).write_text(value)
    registry = "registry: {type: Glue, region: eu-central-1, credentials: {secret: keys}}"
    assert secrets_of(sink_with("", converter=f"converter: Avro, {registry}"), {"keys": tmp_path}, {}) == ["sk", "st"]


def test_the_password_of_a_proxy_is_redacted_as_it_is_in_urls_and_in_headers(tmp_path: Path) -> None:
    login_secret(tmp_path)
    sink = sink_with("", 'proxy: {url: "http://proxy:3128", credentials: {secret: login}}')
    redact = Redactor()
    redact.hide(secrets_of(sink, {"login": tmp_path}, {}))
    header = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    url = f"http://{USER}:{quote(PASSWORD, safe='')}@proxy"
    assert redact(f"{PASSWORD}, {url}, {header}") == f"[hidden], http://{USER}:[hidden]@proxy, [hidden]"


def test_keys_of_customers_are_redacted(tmp_path: Path) -> None:
    for name in ("current", "2025"):
        (tmp_path / name).write_text(f"key-{name}\n")
    keys = "customerKey: {secret: keys, key: current}, previousKeys: [{secret: keys, key: '2025'}]"
    sink = sink_with("", f"encryption: {{type: Customer, {keys}}}")
    assert secrets_of(sink, {"keys": tmp_path}, {}) == ["key-current", "key-2025"]


def test_a_missing_secret_file_adds_no_secret() -> None:
    sink = sink_with(
        "propertySecrets: [{name: ssl.keystore.password, secret: login, key: password}]", "credentials: {secret: keys}"
    )
    assert secrets_of(sink, {}, {"AWS_SECRET_ACCESS_KEY": "from-the-environment"}) == ["from-the-environment"]


def test_the_password_of_a_login_is_a_secret_and_the_user_is_not(tmp_path: Path) -> None:
    (tmp_path / "username").write_text("kafka")
    (tmp_path / "password").write_text("pass;word\n")
    sink = sink_with("login: {type: Scram512, credentials: {secret: login}}")
    assert secrets_of(sink, {"login": tmp_path}, {}) == ["pass;word"]
