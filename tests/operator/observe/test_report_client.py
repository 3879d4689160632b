"""What is taken for a driver's report: what answers at its pod's address, whoever that is."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from s3sink_operator.kube.kube_api import KubeApi, ResponseTooLarge
from s3sink_operator.names import REPORT_TOKEN_ANNOTATION
from s3sink_operator.observe import limited_report, observer, report_client
from s3sink_operator.observe.limited_report import LimitedReport
from s3sink_operator.observe.observer import MAX_MISSED_POLLS, MAX_MISSED_POLLS_AT_END, Observer, belongs_to
from s3sink_operator.observe.owner_check import OwnerChecker
from s3sink_operator.observe.pod_events import PodEventReader
from s3sink_operator.observe.report_client import DirectReportClient
from s3sink_operator.observe.template_check import TemplateChecker
from s3sink_operator.types import Json, Unreachable
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from sink_job.api.enums import StopAction
from sink_job.api.report import Report
from tests.operator.fake_cluster import document, report, running
from tests.operator.observe.test_limited_report import many

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def fetched(handler: Handler, annotations: dict[str, str] | None = None) -> bytes:
    """What a driver that answers so is heard to say."""

    async def ask() -> bytes:
        app = web.Application()
        app.router.add_get("/report", handler)
        app.router.add_get("/elsewhere", _elsewhere)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            ports = [{"name": "report", "containerPort": port}]
            pod: Json = {
                "metadata": {"annotations": annotations},
                "status": {"podIP": "127.0.0.1"},
                "spec": {"containers": [{"ports": ports}]},
            }
            async with aiohttp.ClientSession(auto_decompress=False) as http:
                return await DirectReportClient(http).fetch(pod, StopAction.EXIT)
        finally:
            await runner.cleanup()

    return asyncio.run(ask())


def test_the_operator_sends_the_token_of_the_pod_and_none_without_one() -> None:
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response(body=b"{}")

    fetched(answer, {REPORT_TOKEN_ANNOTATION: "right"})
    fetched(answer)
    assert seen == ["Bearer right", None]


async def _elsewhere(_: web.Request) -> web.Response:
    return web.Response(text="another's")


def test_a_drivers_answer_is_taken_as_the_bytes_that_it_is() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=b"\xff\xfe{}", content_type="application/json")

    assert fetched(answer) == b"\xff\xfe{}"


def test_an_answer_that_is_longer_than_any_report_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_client, "MAX_REPORT_BYTES", 2 << 20)
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(200):
            await response.write(b" " * (1 << 20))
            sent += 1
        return response

    with pytest.raises(OSError, match="longer than 2 MiB"):
        fetched(answer)
    assert sent < 200


def test_a_compressed_answer_is_not_decompressed() -> None:
    bomb = gzip.compress(bytes(64 << 20))

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    assert fetched(answer) == bomb


def test_an_answer_that_comes_a_byte_at_a_time_ends_with_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_client, "REPORT_TIMEOUT_S", 0.3)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.01)
        return response

    with pytest.raises(TimeoutError):
        fetched(answer)


def test_an_answer_with_endless_headers_is_rejected() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(headers={f"X-{number}": "x" * 1000 for number in range(10_000)})

    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        fetched(answer)


def test_a_driver_that_cannot_be_reached_is_reported_without_words_of_the_http_library() -> None:
    pod: Json = {
        "metadata": {},
        "status": {"podIP": "127.0.0.1"},
        "spec": {"containers": [{"ports": [{"name": "report", "containerPort": 1}]}]},
    }

    async def ask() -> bytes:
        async with aiohttp.ClientSession() as http:
            return await DirectReportClient(http).fetch(pod, StopAction.EXIT)

    with pytest.raises(OSError, match=r"^http://127.0.0.1:1/report\?.*: cannot connect: ") as error:
        asyncio.run(ask())
    assert "ssl" not in str(error.value)


def test_reports_of_several_sinks_are_parsed_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    active: list[int] = []
    peak: list[int] = []
    parse = LimitedReport.model_validate_json

    def counted(text: bytes) -> LimitedReport:
        active.append(1)
        peak.append(len(active))
        try:
            return parse(text)
        finally:
            active.pop()

    monkeypatch.setattr(LimitedReport, "model_validate_json", counted)
    text = many(2_000).model_dump_json(by_alias=True).encode()
    observer = observer_of(text)

    async def poll_all() -> None:
        await asyncio.gather(*(observer.poll_report(SinkKey("data", "flights")) for _ in range(8)))

    asyncio.run(poll_all())
    assert peak == [1] * 8


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ResponseTooLarge("/report: the response is longer than 4 MiB"), id="more bytes"),
        pytest.param(many(5_001).model_dump_json(by_alias=True).encode(), id="more topic-partitions"),
    ],
)
def test_a_report_above_the_limit_is_the_problem_of_its_sink(answer: OSError | bytes) -> None:
    found = observed(answer)
    assert isinstance(found, Unreachable)
    assert found.reason == "ReportTooLarge"


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b'{"now": 1e999}', b'{"now": ' + b"9" * 10_000 + b"}", b"[" * 100_000, b'{"a": NaN}']
)
def test_a_report_that_makes_no_sense_is_none(text: bytes) -> None:
    assert isinstance(observed(text), Unreachable)


def test_a_report_is_parsed_outside_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    parse = LimitedReport.model_validate_json

    def counted(text: bytes) -> LimitedReport:
        threads.append(threading.current_thread())
        return parse(text)

    monkeypatch.setattr(LimitedReport, "model_validate_json", counted)
    assert isinstance(observed(report().model_dump_json(by_alias=True).encode()), Report)
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("fields", [b'"partitions":[' + b",".join([b"{}"] * 5_000) + b"]", b'"now":"x"'])
def test_the_errors_of_an_invalid_report_are_counted_outside_of_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, fields: bytes
) -> None:
    """Of 5,000 empty topic-partitions pydantic lists 20,000 errors, in 0.1 s."""
    results = []
    read = limited_report.read_report

    def counted(text: bytes) -> LimitedReport | Unreachable:
        results.append(read(text))
        return results[-1]

    monkeypatch.setattr(observer, "read_report", counted)
    found = observed(b'{"sinkId":"a","name":"a","namespace":"a","state":"Running","startedAt":0,' + fields + b"}")
    assert isinstance(found, Unreachable)
    assert found.message.startswith("invalid report: ")
    assert [each.message for each in results if isinstance(each, Unreachable)] == [found.message]


def observed(answer: OSError | bytes) -> Report | Unreachable | None:
    """What the operator makes of an answer at the address of a driver."""
    found = asyncio.run(observer_of(answer).observe(SinkKey("data", "flights"), refresh=frozenset()))
    assert found is not None
    return found.report


def observer_of(answer: OSError | bytes) -> Observer:
    """An observer of a running sink whose driver answers this."""
    cluster = running()

    class Answers:
        async def fetch(self, pod: Json, at_stop: StopAction) -> bytes:
            if isinstance(answer, OSError):
                raise answer
            return answer

    class NoWarnings:
        async def last_warning(self, pod: Json) -> None:
            return None

    store = ObjectCache()
    for each in (cluster.sink, *cluster.objects.values()):
        store.on_response(each)
    api = cast("KubeApi", None)
    return Observer(
        api,
        store,
        Answers(),
        cast("PodEventReader", NoWarnings()),
        TemplateChecker(api, cluster.settings),
        OwnerChecker(api, "c1"),
    )


def test_a_redirect_of_a_driver_is_not_followed() -> None:
    async def answer(_: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    with pytest.raises(OSError, match="302"):
        fetched(answer)


@pytest.mark.parametrize(
    "other",
    [{"name": "trains"}, {"namespace": "elsewhere"}, {"sink_id": "data.trains"}],
    ids=["name", "namespace", "id"],
)
def test_a_report_of_another_sink_is_not_this_ones(other: dict[str, Any]) -> None:
    assert belongs_to(report(), document())
    assert not belongs_to(report(**other), document())


def test_a_report_has_the_sink_id_of_the_spec() -> None:
    assert belongs_to(report(sink_id="archive"), document(sinkId="archive"))
    assert not belongs_to(report(), document(sinkId="archive"))


def test_an_unreachable_driver_is_persistent_after_several_missed_polls() -> None:
    cluster = running()
    answers: list[str | None] = [None, "", None, *[None] * (MAX_MISSED_POLLS_AT_END - 1)]

    class Answers:
        async def fetch(self, pod: Json, at_stop: StopAction) -> bytes:
            if answers.pop(0) is None:
                raise TimeoutError
            return report().model_dump_json(by_alias=True).encode()

    class NoWarnings:
        async def last_warning(self, pod: Json) -> None:
            return None

    store = ObjectCache()
    for each in (cluster.sink, *cluster.objects.values()):
        store.on_response(each)
    api = cast("KubeApi", None)
    observer = Observer(
        api,
        store,
        Answers(),
        cast("PodEventReader", NoWarnings()),
        TemplateChecker(api, cluster.settings),
        OwnerChecker(api, "c1"),
    )

    async def observed() -> list[tuple[bool, bool] | None]:
        found = []
        while answers:
            seen = await observer.observe(SinkKey("data", "flights"), refresh=frozenset())
            assert seen is not None
            at = seen.report
            found.append((at.persistent, at.overdue) if isinstance(at, Unreachable) else None)
        return found

    first, reported, *later = asyncio.run(observed())
    assert (first, reported) == ((False, False), None)
    assert [each and each[0] for each in later].index(True) == MAX_MISSED_POLLS - 1
    assert [each and each[1] for each in later].index(True) == MAX_MISSED_POLLS_AT_END - 1
