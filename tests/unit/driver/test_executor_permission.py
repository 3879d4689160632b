"""The check whether the driver may create executors, against a server that answers as the API server does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from devtools.processes import wait_until
from sink_job.driver.executor_permission import ExecutorPermission, creation_denial

NOT_FOUND = 'RBAC: clusterrole.rbac.authorization.k8s.io "s3sink-driver" not found'


class ApiServer(BaseHTTPRequestHandler):
    status: dict[str, Any]
    asked: list[tuple[str, str | None, dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers["Authorization"], body["spec"]))
        answer = json.dumps({"status": self.status}).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, template: str, *args: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[type[ApiServer]]:
    class Server(ApiServer):
        status = {"allowed": True}  # noqa: RUF012
        asked = []  # noqa: RUF012
        port = 0

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Server.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Server
        server.shutdown()
        thread.join()


@pytest.fixture
def properties(api: type[ApiServer], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "token").write_text("secret\n")
    return {
        "spark.master": f"k8s://http://127.0.0.1:{api.port}",  # type: ignore[attr-defined]
        "spark.kubernetes.namespace": "data",
        "spark.kubernetes.authenticate.oauthTokenFile": str(tmp_path / "token"),
    }


def test_the_driver_asks_about_its_own_account_with_its_token(api: type[ApiServer], properties: dict[str, str]) -> None:
    assert creation_denial(properties) is None
    ((path, authorization, spec),) = api.asked
    assert path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert authorization == "Bearer secret"
    assert spec == {"resourceAttributes": {"namespace": "data", "verb": "create", "resource": "pods"}}


def test_a_denial_has_the_reason_of_the_api_server(api: type[ApiServer], properties: dict[str, str]) -> None:
    api.status = {"allowed": False, "reason": NOT_FOUND}
    denial = creation_denial(properties)
    assert denial == f"the API server denies the driver to create pods in namespace data: {NOT_FOUND}"


def test_a_denial_without_a_reason_is_a_missing_role(api: type[ApiServer], properties: dict[str, str]) -> None:
    api.status = {"allowed": False}
    assert str(creation_denial(properties)).endswith("no role allows it")


def test_a_denial_comes_and_goes_with_the_permission(api: type[ApiServer], properties: dict[str, str]) -> None:
    with ExecutorPermission(properties, interval_s=0.01) as permission:
        api.status = {"allowed": False, "reason": NOT_FOUND}
        wait_until(lambda: permission.denial is not None, "the denial", seconds=10)
        api.status = {"allowed": True}
        wait_until(lambda: permission.denial is None, "the permission", seconds=10)


def test_an_api_server_that_does_not_answer_denies_nothing(api: type[ApiServer], properties: dict[str, str]) -> None:
    api.status = {}
    with ExecutorPermission(properties, interval_s=0.01) as permission:
        wait_until(lambda: len(api.asked) > 2, "three requests", seconds=10)
        assert permission.denial is None
