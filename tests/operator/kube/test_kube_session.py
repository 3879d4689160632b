"""The proxy on the way to the API server, by the environment."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from kopf._cogs.clients.auth import APIContext
from kubernetes.aio.client import ApiClient, Configuration

from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.kube.kube_session import open_session, proxy_of_environment
from s3sink_operator.watch.handlers import login_as


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")


def test_the_proxy_of_the_environment_is_used() -> None:
    assert proxy_of_environment("https://api.example.com:6443") == "http://proxy:3128"


def test_an_api_server_in_no_proxy_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "10.96.0.1,.example.com")
    assert proxy_of_environment("https://api.example.com:6443") is None
    assert proxy_of_environment("https://10.96.0.1:443") is None


def test_the_proxy_of_another_scheme_is_not_used() -> None:
    assert proxy_of_environment("http://127.0.0.1:8001") is None


@pytest.mark.parametrize(
    ("server", "networks"),
    [
        ("https://10.96.0.1:443", "10.96.0.0/12"),
        ("https://10.96.0.1:443", "localhost, 10.0.0.0/8"),
        ("https://[fd00:10:96::1]:443", "fd00::/8"),
    ],
)
def test_an_api_server_in_a_network_of_no_proxy_is_reached_directly(
    monkeypatch: pytest.MonkeyPatch, server: str, networks: str
) -> None:
    monkeypatch.setenv("NO_PROXY", networks)
    assert proxy_of_environment(server) is None


@pytest.mark.parametrize("networks", ["172.16.0.0/12", "nonsense/99", "10.96.0.1/x"])
def test_an_api_server_in_no_network_of_no_proxy_is_reached_by_the_proxy(
    monkeypatch: pytest.MonkeyPatch, networks: str
) -> None:
    monkeypatch.setenv("NO_PROXY", networks)
    assert proxy_of_environment("https://10.96.0.1:443") == "http://proxy:3128"


def test_a_proxy_without_a_scheme_is_an_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3128")
    assert proxy_of_environment("https://10.96.0.1:443") == "http://proxy:3128"


class RejectingProxy:
    """A proxy that answers each request with 407. `requests`: their first lines; `logins`: user and password."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.logins: list[str] = []
        self.port = 0

    async def __aenter__(self) -> RejectingProxy:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.requests.append(request)
        for name, value in (line.split(": ", 1) for line in headers if line):
            if name == "Proxy-Authorization":
                self.logins.append(base64.b64decode(value.removeprefix("Basic ")).decode())
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


LOGIN = "bob:ge%40heim"


async def _operator_request(server: str) -> str:
    """The message of the error of a request through the proxy."""
    async with ApiClient(Configuration(host=server)) as client, open_session(client) as session:
        with pytest.raises((ConnectionError, ApiError)) as caught:
            await KubeApi(session).get("Pod", "data", "flights-s3sink-driver")
    return f"{caught.value} {caught.value!r}"


async def _kopf_request(server: str) -> None:
    """A request with the credentials that Kopf gets for its watches."""
    async with ApiClient(Configuration(host=server)) as client:
        context = APIContext(await login_as(client)())
    try:
        await context.session.get(f"{server}/api")
    except aiohttp.ClientError:
        pass
    finally:
        await context.close()


async def _through_proxy(
    monkeypatch: pytest.MonkeyPatch, request: Callable[[str], Awaitable[Any]], server: str
) -> tuple[RejectingProxy, Any]:
    async with RejectingProxy() as proxy:
        for name in ("HTTPS_PROXY", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://{LOGIN}@127.0.0.1:{proxy.port}")
        return proxy, await request(server)


@pytest.mark.parametrize("server", ["https://10.96.0.1:443", "http://10.96.0.1:8001"])
@pytest.mark.parametrize("request_", [_operator_request, _kopf_request], ids=["operator", "watches"])
def test_requests_and_watches_log_in_at_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, request_: Callable[[str], Awaitable[Any]], server: str
) -> None:
    proxy, _ = asyncio.run(_through_proxy(monkeypatch, request_, server))
    assert proxy.logins == ["bob:ge@heim"]


def test_the_error_of_a_proxy_that_rejects_the_login_quotes_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    _, message = asyncio.run(_through_proxy(monkeypatch, _operator_request, "https://10.96.0.1:443"))
    assert "407" in message
    assert "heim" not in message


@pytest.mark.parametrize("request_", [_operator_request, _kopf_request], ids=["operator", "watches"])
def test_neither_requests_nor_watches_use_a_proxy_for_an_api_server_in_no_proxy(
    monkeypatch: pytest.MonkeyPatch, request_: Callable[[str], Awaitable[Any]]
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
    proxy, _ = asyncio.run(_through_proxy(monkeypatch, request_, "http://127.0.0.1:1"))
    assert proxy.requests == []
