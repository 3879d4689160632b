"""Schemas of AWS Glue: moto, and for answers that it does not give, a server with canned answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from devtools.certificates import self_signed
from devtools.glue import ACCESS_KEY, SECRET_KEY, GlueServer, glue
from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.api.errors import (
    AccessDenied,
    ClockSkew,
    ConfigurationError,
    InvalidCredentials,
    RegistryChanged,
    SecretNotFound,
    TransientError,
)
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.schemas.schema_resolver import SchemaResolver
from sink_job.engine.retry import RetryPolicy
from sink_job.engine.types import Cancelled
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.registry.clients.glue import GlueRegistry
from sink_job.registry.settings import RegistrySettings
from sink_job.s3.access.assumed_role import AssumedRole
from tests.support.memory_s3 import MemoryS3
from tests.support.registry import FLIGHT, FLIGHT_2, PERSISTENT, glue_client

pytestmark = pytest.mark.data
ID = "01234567-89ab-cdef-0123-456789abcdef"
ROLE = "arn:aws:iam::123456789012:role/schemas"
ANSWER = {
    "SchemaVersionId": ID,
    "SchemaDefinition": json.dumps(FLIGHT),
    "DataFormat": "AVRO",
    "SchemaArn": "arn:aws:glue:eu-central-1:123456789012:schema/travel/flights",
    "VersionNumber": 3,
    "Status": "AVAILABLE",
}


@pytest.fixture(scope="module")
def aws() -> Iterator[GlueServer]:
    with glue() as running:
        yield running


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in the environment, as on a laptop."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)


def secret(folder: Path, **values: str) -> Path:
    for key, value in values.items():
        (folder / key).write_text(value + "\n")
    return folder


def error_of(client: GlueRegistry) -> Exception:
    with pytest.raises((ConfigurationError, TransientError)) as raised:
        client.fetch("flights", ID)
    return raised.value


def answer_error(server: SchemaRegistryServer, code: str, message: str = "", status: int = 400, **options: Any) -> None:
    """Answers requests with an error of AWS."""
    server.answer("/", status, {"__type": code, "message": message}, **options)


# -- the schema --------------------------------------------------------------------------------------------------------


def test_a_schema_has_its_version_within_the_schema_of_glue(aws: GlueServer) -> None:
    aws.register("travel", "flights", FLIGHT)
    second = aws.register("travel", "flights", FLIGHT_2)
    with glue_client(aws.url) as client:
        assert client.fetch("any", second) == RegisteredSchema(
            second, "AVRO", json.dumps(FLIGHT_2), subject="travel/flights", version=2
        )


@pytest.mark.parametrize(
    ("language", "text"),
    [("PROTOBUF", 'syntax = "proto3"; message Flight { int64 number = 1; }'), ("JSON", '{"type": "object"}')],
)
def test_the_data_format_is_the_language(aws: GlueServer, language: str, text: str) -> None:
    schema_id = aws.register("travel", f"of-{language}", text, language=language)
    with glue_client(aws.url) as client:
        found = client.fetch("any", schema_id)
    assert found is not None
    assert (found.language, found.text) == (language, text)


def test_an_id_that_glue_does_not_know_is_unknown(aws: GlueServer) -> None:
    with glue_client(aws.url) as client:
        assert client.fetch("flights", ID) is None


def test_a_schema_of_the_registry_of_the_manifest_is_used(aws: GlueServer) -> None:
    schema_id = aws.register("travel", "named", FLIGHT)
    with glue_client(aws.url, registry_name="travel") as client:
        assert client.fetch("flights", schema_id) is not None


def test_a_schema_of_another_registry_is_a_configuration_error(aws: GlueServer) -> None:
    schema_id = aws.register("staging", "named", FLIGHT)
    with glue_client(aws.url, registry_name="travel") as client, pytest.raises(ConfigurationError) as raised:
        client.fetch("flights", schema_id)
    assert str(raised.value) == (
        f"schema registry {aws.url}: schema id {schema_id} is a version of staging/named, not of a schema of the "
        "registry travel: fix spec.format.registry.name, or remove it to accept all registries"
    )


def test_a_version_that_is_being_deleted_is_used(server: SchemaRegistryServer) -> None:
    server.answer("/", 200, {**ANSWER, "Status": "DELETING"})
    with glue_client(server.url) as client:
        assert client.fetch("flights", ID) is not None


@pytest.mark.parametrize("state", ["PENDING", "FAILURE"])
def test_a_version_that_glue_has_not_accepted_is_unknown(server: SchemaRegistryServer, state: str) -> None:
    server.answer("/", 200, {**ANSWER, "Status": state, "SchemaDefinition": ""})
    with glue_client(server.url) as client, pytest.raises(UnknownSchema) as raised:
        client.fetch("flights", ID)
    assert str(raised.value) == (
        f"the schema id {ID} is version 3 of travel/flights, whose state in AWS Glue is {state}"
    )


def test_another_schema_under_a_known_id_is_noticed(server: SchemaRegistryServer) -> None:
    store = SchemaStore(MemoryS3(), "topics/_s3sink/flights/")  # type: ignore[arg-type]
    server.answer("/", 200, ANSWER, count=1)
    server.answer("/", 200, {**ANSWER, "SchemaDefinition": json.dumps(FLIGHT_2)})
    with glue_client(server.url) as client:

        def resolve() -> None:
            """Resolves the id in a new driver."""
            driver = SchemaResolver(client, store, needs_version=False, wait=lambda s: False, clock=lambda: 0.0)
            driver.resolve({TopicPartition("flights", 0): [ID]})

        resolve()
        with pytest.raises(RegistryChanged, match=f"returns another schema for id {ID} of topic flights"):
            resolve()


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "raises", "text"),
    [
        ("AccessDeniedException", AccessDenied, "the driver's identity needs glue:GetSchemaVersion"),
        ("UnrecognizedClientException", InvalidCredentials, "AWS does not accept the credentials"),
        ("InvalidSignatureException", InvalidCredentials, "AWS does not accept the credentials"),
        ("UnknownOperationException", ConfigurationError, "this endpoint is not that of AWS Glue"),
    ],
)
def test_an_error_that_requires_user_action_is_a_configuration_error(
    server: SchemaRegistryServer, code: str, raises: type[Exception], text: str
) -> None:
    answer_error(server, code, "User: arn:aws:iam::1:user/x is not authorized")
    with glue_client(server.url) as client:
        error = error_of(client)
    assert type(error) is raises
    assert str(error).startswith(f"schema registry {server.url}: schema id {ID}: ")
    assert text in str(error)
    assert f"(GetSchemaVersion: {code} (HTTP 400): User: arn:aws:iam::1:user/x is not authorized)" in str(error)


def test_a_clock_that_differs_is_reported(server: SchemaRegistryServer) -> None:
    answer_error(server, "InvalidSignatureException", "Signature expired: 20261122T000000Z is now earlier than")
    with glue_client(server.url) as client:
        assert isinstance(error_of(client), ClockSkew)


THROTTLED = [("ThrottlingException", 400), ("InternalServiceException", 500), ("ServiceUnavailable", 503), ("", 429)]


@pytest.mark.parametrize(("code", "status"), [*THROTTLED, ("OperationTimeoutException", 400), ("ExpiredToken", 403)])
def test_a_transient_error_is_retried(server: SchemaRegistryServer, code: str, status: int) -> None:
    answer_error(server, code, status=status, count=3)
    server.answer("/", 200, ANSWER)
    with glue_client(server.url, retry=PERSISTENT) as client:
        assert client.fetch("flights", ID) is not None


@pytest.mark.parametrize(("code", "status"), THROTTLED)
def test_a_service_that_stays_overloaded_is_a_transient_error(
    server: SchemaRegistryServer, code: str, status: int
) -> None:
    answer_error(server, code, "Rate exceeded", status=status)
    with glue_client(server.url) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert f"{server.url}: GetSchemaVersion: " in str(error)


@pytest.mark.parametrize("body", ["<html>Please log in</html>", {}, {**ANSWER, "SchemaArn": "arn:aws:glue"}])
def test_an_answer_of_another_form_is_a_transient_error(server: SchemaRegistryServer, body: object) -> None:
    server.answer("/", 200, body)
    with glue_client(server.url) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert "the answer is not the answer of AWS Glue" in str(error)


@pytest.mark.parametrize("status", [301, 404])
def test_another_server_is_a_configuration_error(server: SchemaRegistryServer, status: int) -> None:
    server.answer("/", status, "moved")
    with glue_client(server.url) as client:
        assert "this endpoint is not that of AWS Glue: fix spec.format.registry.url and region" in str(error_of(client))


def test_a_service_that_dies_is_used_again_when_it_returns(aws: GlueServer) -> None:
    with glue() as server:
        server.register("travel", "flights", FLIGHT)
        server.kill()
        with glue_client(server.url) as client:
            assert "no answer (EndpointConnectionError: " in str(error_of(client))
        server.start()
        schema_id = server.register("travel", "flights", FLIGHT)
        with glue_client(server.url, retry=PERSISTENT) as client:
            assert client.fetch("flights", schema_id) is not None


def test_a_service_that_does_not_answer_is_a_transient_error(aws: GlueServer) -> None:
    assert aws.process is not None
    aws.process.pause()
    try:
        with glue_client(aws.url, timeout_s=0.2) as client:
            error = error_of(client)
    finally:
        aws.process.resume()
    assert isinstance(error, TransientError)
    assert "no answer (ReadTimeoutError: " in str(error)


def test_retries_end_when_the_driver_stops() -> None:
    settings = RegistrySettings(
        urls=("http://127.0.0.1:1",), region="eu-central-1", retry=RetryPolicy(max_elapsed_s=3600)
    )
    with pytest.raises(Cancelled):
        GlueRegistry(settings, lambda seconds: True).fetch("flights", ID)


def test_an_untrusted_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    with schema_registry(certificate=self_signed(tmp_path)) as server, glue_client(server.url) as client:
        error = error_of(client)
    assert isinstance(error, ConfigurationError)
    assert "the endpoint's certificate is not trusted: set its certificate authority in" in str(error)


def test_the_certificate_authority_of_the_manifest_is_trusted(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with schema_registry(certificate=certificate) as server:
        server.answer("/", 200, ANSWER)
        with glue_client(server.url, ca_file=certificate.certificate) as client:
            assert client.fetch("flights", ID) is not None


def test_an_unreadable_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not PEM")
    with glue_client("https://127.0.0.1:1", ca_file=tmp_path / "ca.crt") as client:
        assert "the certificates cannot be read" in str(error_of(client))


# -- credentials -------------------------------------------------------------------------------------------------------


class _Recorder(BaseHTTPRequestHandler):
    """Records the identity that has signed each request, and answers with `ANSWER`."""

    identities: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.identities.append(self.headers["Authorization"].split("Credential=")[1].split("/")[0])
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def recorder() -> Iterator[str]:
    """The URL of a service that records who asks."""
    _Recorder.identities.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Recorder) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{service.server_port}"
        service.shutdown()


def test_the_credential_chain_of_aws_is_the_default(recorder: str) -> None:
    with glue_client(recorder) as client:
        client.fetch("flights", ID)
    assert _Recorder.identities == [ACCESS_KEY]


def test_keys_of_a_secret_are_used_and_read_again_after_a_change(recorder: str, tmp_path: Path) -> None:
    folder = secret(tmp_path, AWS_ACCESS_KEY_ID="first-key", AWS_SECRET_ACCESS_KEY="hidden")
    with glue_client(recorder, credentials_dir=folder) as client:
        client.fetch("flights", ID)
        secret(folder, AWS_ACCESS_KEY_ID="another-key")
        client.fetch("flights", ID)
    assert _Recorder.identities == ["first-key", "another-key"]


def test_a_secret_without_a_key_is_reported(tmp_path: Path) -> None:
    with (
        glue_client("http://127.0.0.1:1", credentials_dir=secret(tmp_path, username="u")) as client,
        pytest.raises(SecretNotFound, match=r"to the Secret of spec\.format\.registry\.credentials"),
    ):
        client.fetch("flights", ID)


def test_no_credentials_are_a_configuration_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    for role in (None, ROLE):
        with glue_client("http://127.0.0.1:1", role=role and AssumedRole(arn=role)) as client:
            error = error_of(client)
        assert isinstance(error, InvalidCredentials)
        assert "no credentials: give the driver's pod an IAM role" in str(error)


def test_a_role_is_assumed(recorder: str, aws: GlueServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws.url)
    with glue_client(recorder, role=AssumedRole(arn=ROLE, external_id="s3sink")) as client:
        client.fetch("flights", ID)
        client.fetch("flights", ID)
    assert [identity[:4] for identity in _Recorder.identities] == ["ASIA", "ASIA"]


def test_a_role_that_must_not_be_assumed_is_a_configuration_error(
    server: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    denial = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
    server.answer("/", 403, denial)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
    with glue_client("http://127.0.0.1:1", role=AssumedRole(arn=ROLE)) as client:
        error = error_of(client)
    assert isinstance(error, AccessDenied)
    assert "sts:AssumeRole for spec.format.registry.assumeRole (AssumeRole: AccessDenied (HTTP 403): no)" in str(error)
