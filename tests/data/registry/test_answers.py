"""What each answer of a registry leads to: the table of docs/schemas.md, on a real registry and a real network."""

from __future__ import annotations

import logging

import pytest

from devtools.schema_registry.server import SchemaRegistryServer
from sink_job.api.errors import (
    ConfigurationError,
    RegistryNotFound,
    TransientError,
)
from sink_job.connect.errors import UnknownSchema
from sink_job.driver.secret_registry import Redactor
from sink_job.engine.retry import RetryPolicy
from sink_job.engine.types import Cancelled
from sink_job.registry.clients.confluent import ConfluentRegistry
from sink_job.registry.settings import RegistrySettings
from tests.support.registry import FLIGHT, FLIGHT_2, PERSISTENT, error_of, registry_client

pytestmark = pytest.mark.data
PASSWORD = "correct-horse"
GUID = "89791762-2336-4186-9674-299b90a802e2"


def test_an_id_that_the_registry_does_not_know_is_unknown(client: ConfluentRegistry) -> None:
    assert client.fetch("flights", "7") is None


@pytest.mark.parametrize("schema_id", ["-1", "-2147483648", "2147483648", "4294967295", "99999999999999999999"])
def test_an_id_outside_of_confluents_range_is_unknown_without_a_request(schema_id: str) -> None:
    with registry_client(urls=("http://127.0.0.1:1",)) as client:
        assert client.fetch("flights", schema_id) is None


def test_an_unknown_id_is_asked_for_again(server: SchemaRegistryServer, client: ConfluentRegistry) -> None:
    assert client.fetch("flights", "1") is None
    server.register("flights-value", FLIGHT)
    assert client.fetch("flights", "1") is not None


def test_a_404_of_another_server_is_a_configuration_error(
    server: SchemaRegistryServer,
) -> None:
    with registry_client(urls=(f"{server.url}/wrong",)) as client:
        assert str(error_of(client)) == (
            f"schema registry {server.url}/wrong: schema id 1: this URL has no schema registry: fix "
            "spec.format.registry.url (type Confluent: the URL of its REST API; type Apicurio: a URL that ends in "
            "/apis/registry/v3) (HTTP 404: Unknown Schema Registry Error: b'404 page not found\\n')"
        )


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, "404 page not found"), (404, {"detail": "Not Found"}), (405, {"error_code": 405, "message": "HTTP 405"})],
)
def test_a_guid_is_unknown_to_a_registry_without_guids(
    server: SchemaRegistryServer, client: ConfluentRegistry, status: int, body: object
) -> None:
    server.answer("/schemas/guids", status, body)
    with pytest.raises(UnknownSchema, match=f"{GUID} is a GUID, and the schema registry has no GUIDs .HTTP {status}: "):
        client.fetch("flights", GUID)


def test_a_404_for_a_guid_by_another_server_is_a_configuration_error(server: SchemaRegistryServer) -> None:
    with (
        registry_client(urls=(f"{server.url}/wrong",)) as client,
        pytest.raises(ConfigurationError, match="this URL has no schema registry: fix spec"),
    ):
        client.fetch("flights", GUID)


@pytest.mark.parametrize(
    "body",
    [
        None,
        "schema",
        [1],
        {"schema": 5},
        {"schema": "\ud800"},
        {"schema": '"int"', "schemaType": 5},
        {"schema": '"int"', "references": "a"},
        {"schema": '"int"', "references": [{"name": None, "subject": "a", "version": 1}]},
        {"schema": '"int"', "references": [{"name": "a", "subject": "a", "version": "x"}]},
    ],
)
def test_an_answer_with_values_of_other_types_is_a_transient_error(server: SchemaRegistryServer, body: object) -> None:
    server.answer("/schemas/ids/1", 200, body)
    with registry_client(server) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert "the answer is not the answer of a schema registry" in str(error)


@pytest.mark.parametrize(
    "body",
    [
        {"subject": "flights-value"},
        [{"subject": "flights-value", "version": "1"}],
        [{"subject": "flights-value", "version": 1.5}],
        [{"subject": "flights-value", "version": 2**31}],
        [{"subject": 5, "version": 1}],
    ],
)
def test_a_version_of_another_type_is_a_transient_error(server: SchemaRegistryServer, body: object) -> None:
    server.register("flights-value", FLIGHT)
    server.answer("/schemas/ids/1/versions", 200, body)
    with registry_client(server) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert "versions of schema id 1 in subject flights-value" in str(error)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_overloaded_registry_is_retried(server: SchemaRegistryServer, status: int) -> None:
    server.register("flights-value", FLIGHT)
    server.answer("/schemas", status, {"error_code": 50001, "message": "backend"}, count=4)
    with registry_client(server, retry=PERSISTENT) as client:
        assert client.fetch("flights", "1") is not None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_stays_overloaded_is_a_transient_error(server: SchemaRegistryServer, status: int) -> None:
    server.answer("/schemas", status, {"error_code": 50001, "message": "backend"})
    with registry_client(server) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert f"{server.url}: HTTP {status}: backend" in str(error)


def test_a_dead_registry_is_a_transient_error(server: SchemaRegistryServer) -> None:
    server.kill()
    with registry_client(server) as client:
        error = error_of(client)
    assert isinstance(error, TransientError)
    assert f"{server.url}: no answer (ConnectError: " in str(error)


def test_a_registry_that_returns_is_used_again(server: SchemaRegistryServer) -> None:
    server.register("flights-value", FLIGHT)
    with registry_client(server, retry=PERSISTENT) as client:
        assert client.fetch("flights", "1") is not None
        server.kill()
        server.start()
        server.register("flights-value", FLIGHT)
        server.register("flights-value", FLIGHT_2)
        assert client.fetch("flights", "2") is not None


def test_a_registry_that_does_not_answer_is_a_transient_error(server: SchemaRegistryServer) -> None:
    assert server.process is not None
    with registry_client(server, timeout_s=0.2) as client:
        server.process.pause()
        error = error_of(client)
        server.process.resume()
    assert isinstance(error, TransientError)
    assert "no answer (ReadTimeout: " in str(error)


SEVERAL_TRIES = RetryPolicy(max_elapsed_s=60.0, first_s=0.001, cap_s=0.001)


def test_a_web_page_is_another_service_after_a_few_tries(server: SchemaRegistryServer) -> None:
    server.answer("/schemas", 200, "<html>Please log in</html>")
    with registry_client(server, retry=SEVERAL_TRIES) as client:
        error = error_of(client)
    assert (type(error), error.exit_code) == (RegistryNotFound, 7)
    assert "this URL has no schema registry: fix spec.format.registry.url" in str(error)
    assert "(it answers with a web page)" in str(error)


def test_https_to_a_port_without_tls_is_an_error_of_the_url_after_a_few_tries(server: SchemaRegistryServer) -> None:
    with registry_client(urls=(server.url.replace("http://", "https://"),), retry=SEVERAL_TRIES) as client:
        error = error_of(client)
    assert (type(error), error.exit_code) == (RegistryNotFound, 7)
    assert "the port has no TLS: fix spec.format.registry.url" in str(error)


def test_a_web_page_during_a_restart_of_the_registry_is_no_error(server: SchemaRegistryServer) -> None:
    server.register("flights-value", FLIGHT)
    server.answer("/schemas", 200, "<html>Down for maintenance</html>")
    waited: list[float] = []

    def wait(pause: float) -> bool:
        waited.append(pause)
        if len(waited) == 3:
            server.answer_normally()
        return False

    client = ConfluentRegistry(RegistrySettings(urls=(server.url,), retry=SEVERAL_TRIES), wait, Redactor().hide)
    assert client.fetch("flights", "1") is not None
    client.close()


def test_a_registry_that_is_away_beside_a_url_with_a_web_page_is_a_transient_error(
    server: SchemaRegistryServer,
) -> None:
    server.answer("/schemas", 200, "<html>Please log in</html>")
    urls = (server.url, "http://127.0.0.1:1")
    with registry_client(urls=urls, retry=RetryPolicy(max_elapsed_s=0.2, first_s=0.001, cap_s=0.01)) as client:
        assert isinstance(error_of(client), TransientError)


def test_a_redirect_is_a_configuration_error(server: SchemaRegistryServer) -> None:
    server.answer("/schemas", 301, "moved")
    with registry_client(server) as client:
        assert "the registry rejected the request (HTTP 301" in str(error_of(client))


def test_several_urls_are_tried_in_turn(server: SchemaRegistryServer) -> None:
    server.register("flights-value", FLIGHT)
    with registry_client(urls=("http://127.0.0.1:1", server.url)) as client:
        assert client.fetch("flights", "1") is not None


def test_the_error_names_every_url_without_an_answer(server: SchemaRegistryServer) -> None:
    server.answer("/schemas", 503, {"error_code": 50003, "message": "no leader"})
    with registry_client(urls=("http://127.0.0.1:1", server.url)) as client:
        text = str(error_of(client))
    assert "http://127.0.0.1:1: no answer" in text
    assert f"{server.url}: HTTP 503: no leader" in text


def test_retries_end_when_the_driver_stops(server: SchemaRegistryServer) -> None:
    server.kill()
    endless = RetryPolicy(max_elapsed_s=3600)
    client = ConfluentRegistry(
        RegistrySettings(urls=(server.url,), retry=endless), lambda seconds: True, Redactor().hide
    )
    with pytest.raises(Cancelled):
        client.fetch("flights", "1")


def test_a_failing_registry_is_logged_once(server: SchemaRegistryServer, caplog: pytest.LogCaptureFixture) -> None:
    server.answer("/schemas", 503, {"error_code": 50003, "message": "no leader"}, count=6)
    with caplog.at_level(logging.WARNING, "sink_job"), registry_client(server, retry=PERSISTENT) as client:
        client.fetch("flights", "1")
    assert len(caplog.messages) == 1
