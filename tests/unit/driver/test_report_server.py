"""The driver's HTTP server."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.driver.report_server import JSON, TEXT, Answer, ReportServer


def broken() -> Answer:
    raise RuntimeError("no report")


@pytest.fixture(scope="module")
def server() -> Iterator[ReportServer]:
    routes = {
        "/report": lambda: Answer(200, JSON, b"{}\n"),
        "/readyz": lambda: Answer(503, TEXT, b"Recovering\n"),
        "/broken": broken,
    }
    with ReportServer("127.0.0.1", 0, routes) as running:
        yield running


def ask(server: ReportServer, path: str, method: str = "GET") -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection(server.address, timeout=20)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read()


def test_a_response_has_the_content_type_of_its_route(server: ReportServer) -> None:
    assert ask(server, "/report") == (200, JSON, b"{}\n")
    assert ask(server, "/report?pretty=1")[0] == 200


def test_a_response_has_the_status_of_its_route(server: ReportServer) -> None:
    assert ask(server, "/readyz") == (503, TEXT, b"Recovering\n")


def test_head_has_no_body(server: ReportServer) -> None:
    assert ask(server, "/report", "HEAD") == (200, JSON, b"")


def test_the_response_to_an_unknown_path_lists_the_paths(server: ReportServer) -> None:
    status, _, body = ask(server, "/")
    assert status == 404
    assert b"/report" in body


def test_an_error_in_a_route_is_a_response_with_500(server: ReportServer) -> None:
    assert ask(server, "/broken")[0] == 500


def test_requests_run_concurrently() -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow() -> Answer:
        entered.set()
        leave.wait(20)
        return Answer(200, TEXT, b"")

    with ReportServer("127.0.0.1", 0, {"/slow": slow, "/quick": lambda: Answer(200, TEXT, b"")}) as server:
        first = threading.Thread(target=ask, args=(server, "/slow"))
        first.start()
        assert entered.wait(20)
        assert ask(server, "/quick")[0] == 200
        leave.set()
        first.join()


def test_an_address_in_use_is_a_configuration_error(server: ReportServer) -> None:
    host, port = server.address.split(":")
    with pytest.raises(ConfigurationError, match=f"cannot listen on {server.address}: Address already in use"):
        ReportServer(host, int(port), {})


def test_an_address_of_another_host_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="cannot listen on"):
        ReportServer("192.0.2.1", 0, {})


def starting(*answers: Answer) -> tuple[ReportServer, list[Answer]]:
    """A server whose route gives one answer after the other, the last one for ever; and the answers that are left."""
    left = list(answers)
    return ReportServer("127.0.0.1", 0, {"/readyz": lambda: left.pop(0) if len(left) > 1 else left[0]}), left


WAITS = Answer(503, TEXT, b"Starting\n", may_change=True)
READY, FAILED = Answer(200, TEXT, b"Running\n"), Answer(503, TEXT, b"Failed\n")


@pytest.mark.parametrize("last", [READY, FAILED])
def test_a_request_with_a_wait_is_answered_as_soon_as_the_answer_is_final(last: Answer) -> None:
    server, left = starting(WAITS, WAITS, last)
    with server:
        assert ask(server, "/readyz?wait=60") == (last.status, TEXT, last.body)
    assert left == [last]


@pytest.mark.parametrize("query", ["", "?wait=0", "?wait=soon", "?wait=-1"])
def test_a_request_without_a_wait_is_answered_at_once(query: str) -> None:
    server, left = starting(WAITS, READY)
    with server:
        assert ask(server, f"/readyz{query}")[0] == 503
    assert left == [READY]


# -- the token ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protected() -> Iterator[ReportServer]:
    routes = {
        "/report": lambda: Answer(200, JSON, b"{}\n"),
        "/metrics": lambda: Answer(200, TEXT, b"up 1\n"),
        "/metrics/partitions": lambda: Answer(200, TEXT, b"up 1\n"),
        "/healthz": lambda: Answer(200, TEXT, b"ok\n"),
    }
    with ReportServer("127.0.0.1", 0, routes, token="right") as running:
        yield running


def status(server: ReportServer, path: str, authorization: str | None = None) -> int:
    connection = http.client.HTTPConnection(server.address, timeout=20)
    connection.request("GET", path, headers={} if authorization is None else {"Authorization": authorization})
    return connection.getresponse().status


@pytest.mark.parametrize("path", ["/report", "/metrics", "/metrics/partitions"])
def test_report_and_metrics_require_the_token(protected: ReportServer, path: str) -> None:
    assert status(protected, path) == 401
    assert status(protected, f"{path}?token=wrong") == 401
    assert status(protected, f"{path}?token=") == 401
    assert status(protected, path, "Bearer wrong") == 401
    assert status(protected, path, "Basic right") == 401
    assert status(protected, path, "Bearer ä") == 401
    assert status(protected, f"{path}?token=right") == 200
    assert status(protected, path, "Bearer right") == 200
    assert status(protected, path, "bearer right") == 200


def test_a_rejected_request_gets_no_content(protected: ReportServer) -> None:
    assert b"up" not in ask(protected, "/metrics")[2]


def test_health_requires_no_token(protected: ReportServer) -> None:
    assert status(protected, "/healthz") == 200


def test_without_a_token_nothing_requires_one(server: ReportServer) -> None:
    assert status(server, "/report") == 200


def test_a_query_parameter_reaches_its_function_and_others_are_ignored() -> None:
    given: list[str] = []
    routes = {"/report": lambda: Answer(200, JSON, b"{}")}
    with ReportServer("127.0.0.1", 0, routes, {"atStop": given.append}) as server:
        assert ask(server, "/report?atStop=Ask&pretty=1")[0] == 200
        assert ask(server, "/elsewhere?atStop=Exit")[0] == 404
    assert given == ["Ask"]
