"""Answers of the API server, and of pods behind it, that cost the operator more than they should."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from s3sink_operator.kube.kube_api import ApiError, KubeApi, ResponseTooLarge
from s3sink_operator.kube.kube_session import open_session


def _raw_answer(handler: Callable[[web.Request], Awaitable[web.StreamResponse]], limit: int) -> bytes:
    """The content of a path of an API server with this handler."""
    found: bytes = _answer(handler, lambda api: api.raw("/proxy/report", limit=limit))
    return found


def _answer(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], ask_for: Callable[[KubeApi], Awaitable[Any]]
) -> Any:
    """What a request of the operator returns from an API server with this handler."""

    async def ask() -> Any:
        app = web.Application()
        app.router.add_get("/{path:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            server = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with ApiClient(Configuration(host=server)) as client, open_session(client) as session:
                return await ask_for(KubeApi(session))
        finally:
            await runner.cleanup()

    return asyncio.run(ask())


def test_a_redirect_of_a_pod_behind_the_api_server_is_not_followed() -> None:
    paths = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.path)
        raise web.HTTPFound("/api/v1/secrets")

    with pytest.raises(ApiError) as error:
        _raw_answer(answer, 1 << 20)
    assert error.value.status == 302
    assert paths == ["/proxy/report"]


def test_a_compressed_answer_of_a_pod_behind_the_api_server_takes_little_memory() -> None:
    bomb = gzip.compress(bytes(256 << 20), compresslevel=1)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="longer than 4 MiB"):
            _raw_answer(answer, 4 << 20)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_a_list_with_a_maximum_is_not_read_beyond_its_size_limit() -> None:
    queries = []

    async def answer(request: web.Request) -> web.Response:
        queries.append(dict(request.query))
        return web.Response(body=b'{"items":[' + b" " * (2 << 20) + b"]}")

    with pytest.raises(ResponseTooLarge):
        _answer(answer, lambda api: api.list("Event", "data", fields="involvedObject.uid=1", most=100))
    assert queries == [{"fieldSelector": "involvedObject.uid=1", "limit": "100"}]
