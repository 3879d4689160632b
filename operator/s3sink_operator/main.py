"""`s3sink operator`: wires watches, work queue and reconciler, and runs them until a signal or a lost Lease."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import secrets
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import aiohttp
from kubernetes.aio.client import ApiClient

from s3sink_operator import logs, names
from s3sink_operator.apply.applier import DecisionApplier
from s3sink_operator.command_line import Options, add_arguments, read_options
from s3sink_operator.http_server import WorkerHeartbeat, serve
from s3sink_operator.kube import lease
from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.kube.kube_session import KubeConfigError, load_config, open_session
from s3sink_operator.nesting import deep_json
from s3sink_operator.objects import template_hash
from s3sink_operator.observe.observer import Observer, ReportClient
from s3sink_operator.observe.owner_check import OwnerChecker
from s3sink_operator.observe.pod_events import PodEventReader
from s3sink_operator.observe.report_client import DirectReportClient, ProxyReportClient
from s3sink_operator.observe.template_check import TemplateChecker
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.rollout.rollout_tracker import RolloutTracker
from s3sink_operator.types import Settings
from s3sink_operator.watch.handlers import build_registry, kopf_settings
from s3sink_operator.watch.kopf_operator import run_watches, stop_on_signals
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from s3sink_operator.watch.workqueue import WorkQueue
from sink_job.api.spec import GROUP, VERSION

_log = logging.getLogger("s3sink_operator")
_HEARTBEAT_S = 5.0
_YOUNG_OBJECTS: Final = 20_000
"""New containers before a garbage collection."""
EXIT_USAGE: Final = 2
"""Exit code for wrong flags, a wrong configuration, and without a kubeconfig."""
EXIT_LEASE_LOST: Final = 75
"""Exit code after a lost Lease or a transient error: restart the process."""


def run(args: argparse.Namespace) -> int:
    """Runs the operator. Returns its exit code."""
    logs.configure_logging(as_json=args.log == "json")
    try:
        options = read_options(args)
    except ValueError as error:
        return _fail(error)
    try:
        with deep_json():
            return asyncio.run(_main(args, options))
    except KubeConfigError as error:
        return _fail(error)
    except (ApiError, OSError, TimeoutError, aiohttp.ClientError) as error:
        _log.error("request to the API server failed: %s", error)
        return EXIT_LEASE_LOST


def _fail(error: Exception) -> int:
    print(f"s3sink operator: {error}", file=sys.stderr)
    return EXIT_USAGE


async def _main(args: argparse.Namespace, options: Options) -> int:
    await load_config()
    async with (
        ApiClient() as client,
        aiohttp.ClientSession(auto_decompress=False) as http,
        open_session(client) as session,
    ):
        api = KubeApi(session)
        if (missing := await _missing_crd(api)) is not None:
            _log.error("%s", missing)
            return EXIT_LEASE_LOST
        settings = await _settings(args, options, api)
        cache, heartbeat = ObjectCache(options.namespace_bytes), WorkerHeartbeat()
        queue: WorkQueue[SinkKey] = WorkQueue(time.monotonic, lambda key: key.namespace)
        rollout = RolloutTracker(template_hash(settings), options.limit, cache, _now)
        cache.on_sink = rollout.put
        reports: ReportClient = ProxyReportClient(api) if args.report_by == "Proxy" else DirectReportClient(http)
        reconciler = _reconciler(api, cache, reports, rollout, settings, options)
        registry = build_registry(client, cache, queue, nodes=await _can_watch_nodes(api))
        stop, started = asyncio.Event(), asyncio.Event()
        stop_on_signals(stop)

        async def work() -> None:
            namespaces = args.namespace or ()
            watching = run_watches(registry, kopf_settings(args.selector), namespaces, started=started, stop=stop)
            await _run_workers(watching, started, args.workers, queue, reconciler, heartbeat)

        async with serve(args.port, heartbeat, cache, queue, rollout) as port:
            _log.info("serving metrics and health on port %d", port)
            if args.lease_namespace:
                heartbeat.waiting = True
                working = lease.run_while_leading(lease.Lease(api, args.lease_namespace, args.lease_name), work)
            else:
                working = work()
            return await _run_until_stopped(stop, working, heartbeat)


async def _settings(args: argparse.Namespace, options: Options, api: KubeApi) -> Settings:
    """The settings from the command line, and from what the API server supports."""
    return Settings(
        image=args.image,
        image_pull_policy=args.image_pull_policy,
        sink_defaults=options.defaults,
        report_salt=secrets.token_hex(32),
        cluster_id=args.cluster_id or await _cluster_id(api),
        driver_cluster_role=args.driver_cluster_role,
        node_lost_timeout_ms=options.node_lost_ms,
        rollout_pause_ms=options.pause_ms,
        version=_version(),
        shrink_after_ms=options.shrink_after_ms,
        run_as_user=options.run_as_user,
        supports_resize="pods/resize" in await api.resources("v1"),
    )


def _reconciler(
    api: KubeApi,
    cache: ObjectCache,
    reports: ReportClient,
    rollout: RolloutTracker,
    settings: Settings,
    options: Options,
) -> Reconciler:
    observer = Observer(
        api,
        cache,
        reports,
        PodEventReader(api),
        TemplateChecker(api, settings),
        OwnerChecker(api, settings.cluster_id),
        settings.sink_defaults,
        options.restrictions,
    )
    applier = DecisionApplier(api, cache, _now)
    return Reconciler(observer, applier, settings, _now, rollout, resync_s=options.resync_s)


async def _run_until_stopped(stop: asyncio.Event, working: Any, heartbeat: WorkerHeartbeat) -> int:
    task, stopped, beating = (
        asyncio.ensure_future(each) for each in (working, stop.wait(), _beat_while_waiting(heartbeat))
    )
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        beating.cancel()
        stopped.cancel()
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return 0
    if error := task.exception():
        raise error
    if stop.is_set():
        return 0
    _log.error("lost the lease or the watches: exiting for a restart")
    return EXIT_LEASE_LOST


async def _beat_while_waiting(heartbeat: WorkerHeartbeat) -> None:
    """Beats for the workers until they start: waiting for the Lease is healthy."""
    while not heartbeat.ready:
        heartbeat.beat()
        await asyncio.sleep(_HEARTBEAT_S)


async def _run_workers(
    watching: Coroutine[Any, Any, None],
    started: asyncio.Event,
    workers: int,
    queue: WorkQueue[SinkKey],
    reconciler: Reconciler,
    heartbeat: WorkerHeartbeat,
) -> None:
    """Runs watches and workers until one of them ends. Kopf delivers events after all lists are complete."""

    async def worker() -> None:
        while True:
            heartbeat.beat()
            try:
                async with asyncio.timeout(_HEARTBEAT_S):
                    key = await queue.take()
            except TimeoutError:
                continue
            async with _processing(queue, key):
                requeue_s = await reconciler.reconcile(key)
                if requeue_s is not None:
                    queue.add(key, requeue_s)
                for due in reconciler.due():
                    queue.add(due)

    async def begin() -> None:
        await started.wait()
        heartbeat.ready, heartbeat.waiting = True, False
        _tune_garbage_collection()
        await asyncio.gather(*(worker() for _ in range(workers)))

    tasks = [asyncio.ensure_future(each) for each in (watching, begin())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error


def _tune_garbage_collection() -> None:
    """Collects rarely, and not what exists now: almost all objects are cached for long and have no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)


@contextlib.asynccontextmanager
async def _processing(queue: WorkQueue[SinkKey], key: SinkKey) -> AsyncIterator[None]:
    """Logs an unexpected error of a pass and queues the sink again after a minute."""
    try:
        yield
    except Exception:
        _log.exception(
            "%s: reconcile failed with an unexpected error; it is retried. The running driver is not affected", key
        )
        queue.add(key, 60)
    finally:
        queue.done(key)


async def _missing_crd(api: KubeApi) -> str | None:
    """The error message if the cluster has no CustomResourceDefinition of S3Sinks; None if it has."""
    try:
        if names.PLURAL in await api.resources(f"{GROUP}/{VERSION}"):
            return None
    except ApiError as error:
        if not error.is_not_found:
            raise
    return f"{names.PLURAL}.{GROUP}/{VERSION} not found: apply the CustomResourceDefinition first"


async def _can_watch_nodes(api: KubeApi) -> bool:
    """Whether the operator may watch nodes. Without that, pods on lost nodes are not replaced."""
    if all([await api.is_allowed(verb, "nodes") for verb in ("list", "watch")]):
        return True
    _log.warning("no permission to watch nodes: a driver on a lost node is not replaced")
    return False


async def _cluster_id(api: KubeApi) -> str:
    try:
        found = await api.get("Namespace", None, "kube-system")
    except ApiError as error:
        raise ApiError(error.status, error.reason, f"{error.message}: set --cluster-id") from None
    if found is None:
        raise ApiError(404, "NotFound", "the namespace kube-system was not found: set --cluster-id")
    return str(found["metadata"]["uid"])


def _version() -> str:
    try:
        return version("s3sink")
    except PackageNotFoundError:  # runs from a source tree
        return ""


def _now() -> int:
    return time.time_ns() // 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m s3sink_operator.main`."""
    parser = argparse.ArgumentParser(prog="s3sink operator", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
