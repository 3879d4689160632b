"""Running workers: what they answer, and what they should not."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from devtools.certificates import Certificate, self_signed
from sink_job.api.errors import ConfigurationError, InvalidConnector, InvalidCredentials, SinkError, TransientError
from sink_job.migrate.inputs.worker_rest import WorkerUrl, check_worker, read_running, stop_connector

CONFIG = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "flights", "name": "flights"}
INFO = {"name": "flights", "config": CONFIG, "type": "sink"}
STATUS = {"connector": {"state": "PAUSED"}, "tasks": [{"id": 0, "state": "FAILED"}, {"id": 1, "state": "PAUSED"}]}
OFFSETS = {"offsets": [{"partition": {"kafka_topic": "flights", "kafka_partition": 0}, "offset": {"kafka_offset": 42}}]}
Answer = tuple[int, str, str]


def as_json(document: object, status: int = 200) -> Answer:
    return status, "application/json", json.dumps(document)


@contextmanager
def worker(
    answers: Mapping[str, Answer], headers: Mapping[str, str] | None = None, tls: Certificate | None = None
) -> Iterator[tuple[str, list[Any]]]:
    """A server with these answers by path, and the requests that it got."""
    requests: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append((self.path, self.headers.get("Authorization")))
            status, kind, body = answers.get(self.path, (404, "application/json", '{"error_code": 404}'))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def do_PUT(self) -> None:
            requests.append((f"PUT {self.path}", self.headers.get("Authorization")))
            status, kind, body = answers.get(f"PUT {self.path}", (404, "application/json", '{"error_code": 404}'))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate, tls.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_connector_has_its_state_its_failed_tasks_and_its_offsets() -> None:
    answers = {
        "/connectors/flights": as_json(INFO),
        "/connectors/flights/status": as_json(STATUS),
        "/connectors/flights/offsets": as_json(OFFSETS),
    }
    with worker(answers) as (url, _):
        (found,) = read_running(f"{url}/connectors/flights/")
    assert (found.name, found.state, found.settings) == ("flights", "Paused", CONFIG)
    assert found.remarks == (
        "Task 0 of the connector is FAILED.",
        "Offsets of the connector when this was written: flights-0: 42.",
    )


def test_an_older_worker_without_offsets_is_enough() -> None:
    with worker({"/connectors/flights": as_json(INFO)}) as (url, _):
        (found,) = read_running(f"{url}/connectors/flights/config")
    assert (found.state, found.remarks) == ("Running", ())


def test_all_s3_sinks_of_a_worker_are_read_and_other_connectors_are_not() -> None:
    other = {"info": {"name": "jdbc", "config": {"connector.class": "x.JdbcSinkConnector"}}, "status": {}}
    every = {"jdbc": other, "flights": {"info": INFO, "status": STATUS}}
    with worker({"/connectors?expand=info&expand=status": as_json(every)}) as (url, _):
        assert [each.name for each in read_running(f"{url}/connectors")] == ["flights"]
    with (
        worker({"/connectors?expand=info&expand=status": as_json({"jdbc": other})}) as (empty, _),
        pytest.raises(InvalidConnector, match="no connector of the class"),
    ):
        read_running(empty)


def test_names_are_encoded_and_a_login_is_sent_and_not_shown() -> None:
    with worker({"/connect/connectors/a%20b": as_json({**INFO, "name": "a b"})}) as (url, requests):
        address = url.replace("//", "//user:hunter%2F2@")
        (found,) = read_running(f"{address}/connect/connectors/a%20b")
    assert found.name == "a b"
    assert requests[0] == ("/connect/connectors/a%20b", "Basic dXNlcjpodW50ZXIvMg==")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (as_json({}, 401), InvalidCredentials, "answered 401: give user and password"),
        (as_json({}, 403), InvalidCredentials, "answered 403"),
        (as_json({}, 404), InvalidConnector, "it has no connector flights"),
        (as_json({}, 301), ConfigurationError, "redirects to other.example.com"),
        (as_json({}, 400), ConfigurationError, "answered 400"),
        (as_json({}, 409), TransientError, "try again"),
        (as_json({}, 500), TransientError, "try again"),
        ((200, "text/html", "<html>Sign in</html>"), InvalidConnector, "answered with text/html, not with JSON"),
        ((200, "application/json", '{"a": 1'), InvalidConnector, "not with JSON"),
        (as_json([]), InvalidConnector, "is an array"),
        (as_json({"error": "x"}), InvalidConnector, "neither connector.class nor config"),
    ],
)
def test_each_wrong_answer_has_one_message(answer: Answer, kind: type[SinkError], words: str) -> None:
    headers = {"Location": "https://other.example.com/x?token=hunter2"}
    with worker({"/connectors/flights": answer}, headers) as (url, _), pytest.raises(kind) as raised:
        read_running(f"{url.replace('//', '//user:hunter2@')}/connectors/flights")
    assert words in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_worker_that_never_answers_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/connectors/flights"
        with pytest.raises(TransientError, match=r"did not answer within 0\.2 s"):
            read_running(url, timeout_s=0.2)


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"], ids=["head", "body"])
def test_a_worker_that_answers_byte_by_byte_is_a_timeout(start: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as slow:
        ended = threading.Event()

        def drip() -> None:
            connection, _ = slow.accept()
            with connection:
                connection.sendall(start)
                while not ended.wait(0.02):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(TransientError, match=r"did not answer within 0\.3 s"):
                read_running(f"http://127.0.0.1:{slow.getsockname()[1]}/connectors/flights", timeout_s=0.3)
        finally:
            ended.set()
            thread.join()


def test_a_worker_that_is_not_there_is_a_transient_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(TransientError, match="cannot be reached"):
        read_running(f"http://127.0.0.1:{port}/connectors/flights")


def test_http_where_https_is_expected_has_its_own_message() -> None:
    with worker({}) as (url, _), pytest.raises(ConfigurationError, match="check http and https"):
        read_running(f"{url.replace('http', 'https')}/connectors/flights")


def test_a_certificate_that_is_not_trusted_has_its_own_message(tmp_path: Path) -> None:
    files = self_signed(tmp_path)
    with (
        worker({"/connectors/flights": as_json(INFO)}, tls=files) as (url, _),
        pytest.raises(ConfigurationError, match=r"is not trusted .*: set SSL_CERT_FILE to its CA"),
    ):
        read_running(f"{url}/connectors/flights")


@pytest.mark.parametrize("url", ["http://", "http://host:99999/connectors", "http://ho st/", "http://[x/"])
def test_a_text_that_is_no_url_is_rejected(url: str) -> None:
    with pytest.raises(InvalidConnector, match="URL of the worker is not valid"):
        WorkerUrl(url)


def test_a_worker_is_described_by_its_version_and_its_cluster() -> None:
    with worker({"/": as_json({"version": "4.1.0", "commit": "x", "kafka_cluster_id": "abc"})}) as (url, _):
        assert "has version 4.1.0 of Kafka Connect; its Kafka cluster is abc." in check_worker(url)


def test_many_offsets_are_shortened() -> None:
    one = OFFSETS["offsets"][0]
    answers = {"/connectors/flights": as_json(INFO), "/connectors/flights/offsets": as_json({"offsets": [one] * 30})}
    with worker(answers) as (url, _):
        (found,) = read_running(f"{url}/connectors/flights")
    assert found.remarks[0].endswith("and 10 more.")


NOTHING = (204, "text/plain", "")


def test_a_connector_is_stopped() -> None:
    answers = {"/connectors/my%20flights": as_json(INFO), "PUT /connectors/my%20flights/stop": NOTHING}
    with worker(answers) as (url, requests):
        said = stop_connector(url.replace("http://", "http://user:secret@") + "/connectors/my%20flights")
    assert said == f'the connector "my flights" was stopped at {url}'
    assert [path for path, _ in requests] == ["/connectors/my%20flights", "PUT /connectors/my%20flights/stop"]
    assert all(login is not None for _, login in requests)


@pytest.mark.parametrize("status", [404, 405])
def test_a_worker_that_cannot_stop_pauses_and_says_what_is_left_to_do(status: int) -> None:
    answers = {
        "/connectors/flights": as_json(INFO),
        "PUT /connectors/flights/stop": as_json({}, status),
        "PUT /connectors/flights/pause": (202, "text/plain", ""),
    }
    with worker(answers) as (url, _):
        said = stop_connector(f"{url}/connectors/flights")
    assert "was paused" in said
    assert f"curl -X DELETE '{url}/connectors/flights'" in said


def test_a_worker_that_can_neither_stop_nor_pause_is_an_error() -> None:
    with (
        worker({"/connectors/flights": as_json(INFO)}) as (url, _),
        pytest.raises(ConfigurationError, match="neither stop nor pause"),
    ):
        stop_connector(f"{url}/connectors/flights")


@pytest.mark.parametrize(
    ("answers", "kind", "words"),
    [
        ({}, InvalidConnector, "it has no connector flights"),
        ({"/connectors/flights": as_json({}, 401)}, InvalidCredentials, "answered 401"),
        ({"/connectors/flights": (200, "text/html", "<html>")}, InvalidConnector, "is it a worker of Kafka Connect"),
        (
            {"/connectors/flights": as_json(INFO), "PUT /connectors/flights/stop": as_json({}, 409)},
            TransientError,
            "answered 409: try again",
        ),
        (
            {"/connectors/flights": as_json(INFO), "PUT /connectors/flights/stop": as_json({}, 403)},
            InvalidCredentials,
            "answered 403",
        ),
        (
            {"/connectors/flights": as_json(INFO), "PUT /connectors/flights/stop": as_json({}, 307)},
            ConfigurationError,
            "redirects",
        ),
    ],
)
def test_a_connector_that_cannot_be_stopped_has_one_message(
    answers: dict[str, Answer], kind: type[SinkError], words: str
) -> None:
    with worker(answers) as (url, _), pytest.raises(kind, match=words):
        stop_connector(f"{url}/connectors/flights")


@pytest.mark.parametrize("url", ["", "http://w", "http://w:8083/connectors/", "ftp://w/connectors/c", "w/connectors/c"])
def test_a_url_that_names_no_connector_is_rejected(url: str) -> None:
    with pytest.raises(InvalidConnector, match="http://HOST:8083/connectors/NAME"):
        stop_connector(url)
