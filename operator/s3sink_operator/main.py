"""`s3sink operator`: wires watches, work queue and reconciler, and runs them until a signal or a lost Lease."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import aiohttp
import kopf
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient

from s3sink_operator import handlers, lease, logs, names
from s3sink_operator.apply import DecisionApplier
from s3sink_operator.decide.rollout import MaxUnavailable
from s3sink_operator.http_server import WorkerHeartbeat, serve
from s3sink_operator.kube_api import ApiError, KubeApi
from s3sink_operator.object_cache import ObjectCache, SinkKey
from s3sink_operator.objects import template_hash
from s3sink_operator.observe import Observer, ReportClient
from s3sink_operator.owner_check import OwnerChecker
from s3sink_operator.pod_events import PodEventReader
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.report_client import DirectReportClient, ProxyReportClient
from s3sink_operator.rollout_tracker import RolloutTracker
from s3sink_operator.sink_defaults import NO_DEFAULTS, SinkDefaults, read_config
from s3sink_operator.template_check import TemplateChecker
from s3sink_operator.types import Settings
from s3sink_operator.workqueue import WorkQueue
from sink_job.api.quantities import parse_duration
from sink_job.api.spec import GROUP, VERSION

_log = logging.getLogger("s3sink_operator")
_ENVIRONMENT: Final = "S3SINK_OPERATOR_"
_ASSIGNED_BY_CLUSTER: Final = "Cluster"
_HEARTBEAT_S = 5.0
_MIN_RESYNC_S: Final = 0.1
EXIT_LEASE_LOST: Final = 75
"""Exit code after a lost Lease or a transient error: restart the process."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags. Each has an environment variable: `--lease-name` is S3SINK_OPERATOR_LEASE_NAME."""

    def flag(name: str, default: str | None, text: str, **more: Any) -> None:
        variable = _ENVIRONMENT + name.upper().replace("-", "_")
        parser.add_argument(f"--{name}", default=os.environ.get(variable, default), help=text, **more)

    spaces = os.environ.get(f"{_ENVIRONMENT}NAMESPACE")
    parser.add_argument(
        "--namespace",
        action="append",
        default=spaces.split(",") if spaces else None,
        help="namespace to watch; repeatable; default: all",
    )
    flag("selector", None, "label selector of the S3Sinks to manage")
    flag("image", None, "default image of jobs")
    flag(
        "image-pull-policy",
        "IfNotPresent",
        "image pull policy of drivers and executors",
        choices=["Always", "IfNotPresent", "Never"],
    )
    flag("config", None, "YAML file with defaults for sinks (sinkDefaults)")
    flag("driver-cluster-role", "s3sink-driver", "ClusterRole that drivers are bound to in their namespace")
    flag(
        "cluster-id",
        None,
        "cluster name recorded in ledger ownership claims; default: the uid of the namespace kube-system",
    )
    flag("lease-namespace", None, "namespace of the Lease; default: no leader election")
    flag("lease-name", names.LEASE_NAME, "name of the Lease")
    flag("port", "8080", "port of /metrics, /healthz and /readyz")
    flag("log", "text", "log format: text or json", choices=["text", "json"])
    flag("node-lost-timeout", "5m", "time before a pod on a lost node is deleted by force")
    flag("resync", "5m", "full resync interval")
    flag("run-as-user", "10001", "uid and gid of the pods; Cluster: assigned by the cluster (OpenShift)")
    flag(
        "rollout-max-unavailable",
        "10%",
        "sinks that a rollout of a new default image may make unavailable: a number, or a percentage of the sinks",
    )
    flag("rollout-pause", "30s", "time that a restarted sink must be Ready before the rollout continues")
    flag("shrink-after", "10m", "time for which less memory has to suffice before it is decreased in place")
    flag("workers", "16", "maximum number of concurrent reconciles")
    flag(
        "report-by",
        "Pod",
        "how reports of drivers are fetched: Pod (directly) or Proxy (through the API server)",
        choices=["Pod", "Proxy"],
    )


def run(args: argparse.Namespace) -> int:
    """Runs the operator. Returns its exit code."""
    logs.configure_logging(as_json=args.log == "json")
    if not args.image:
        print("s3sink operator: --image is required: the default image of jobs", file=sys.stderr)
        return 2
    try:
        resync_s = parse_duration(args.resync) / 1000
        node_lost_ms = parse_duration(args.node_lost_timeout)
        pause_ms = parse_duration(args.rollout_pause)
        shrink_after_ms = parse_duration(args.shrink_after)
        if resync_s < _MIN_RESYNC_S:
            raise ValueError(f"--resync {args.resync} is below {_MIN_RESYNC_S} s")
    except ValueError as error:
        flags = "--resync, --node-lost-timeout, --rollout-pause, --shrink-after"
        print(f"s3sink operator: {flags}: {error}", file=sys.stderr)
        return 2
    try:
        limit = MaxUnavailable.parse(args.rollout_max_unavailable)
    except ValueError as error:
        print(f"s3sink operator: --rollout-max-unavailable: {error}", file=sys.stderr)
        return 2
    try:
        defaults = NO_DEFAULTS if args.config is None else read_config(Path(args.config).read_text())
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        print(f"s3sink operator: --config {args.config}: {cause}", file=sys.stderr)
        return 2
    if args.run_as_user != _ASSIGNED_BY_CLUSTER and not (args.run_as_user.isascii() and args.run_as_user.isdigit()):
        print(f"s3sink operator: --run-as-user: {args.run_as_user} is neither a uid nor Cluster", file=sys.stderr)
        return 2
    try:
        return asyncio.run(
            _main(
                args,
                limit,
                defaults,
                resync_s=resync_s,
                node_lost_ms=node_lost_ms,
                pause_ms=pause_ms,
                shrink_after_ms=shrink_after_ms,
            )
        )
    except (ApiError, OSError, TimeoutError) as error:
        _log.error("request to the API server failed: %s", error)
        return EXIT_LEASE_LOST


async def _main(
    args: argparse.Namespace,
    limit: MaxUnavailable,
    defaults: SinkDefaults,
    *,
    resync_s: float,
    node_lost_ms: int,
    pause_ms: int,
    shrink_after_ms: int,
) -> int:
    await _load_config()
    async with ApiClient() as client, aiohttp.ClientSession() as http:
        api = KubeApi(client)
        if (missing := await _missing_crd(api)) is not None:
            _log.error("%s", missing)
            return EXIT_LEASE_LOST
        store, heartbeat = ObjectCache(), WorkerHeartbeat()
        queue: WorkQueue[SinkKey] = WorkQueue(time.monotonic)
        reports: ReportClient = ProxyReportClient(api) if args.report_by == "Proxy" else DirectReportClient(http)
        settings = Settings(
            image=args.image,
            image_pull_policy=args.image_pull_policy,
            sink_defaults=defaults,
            report_salt=secrets.token_hex(32),
            cluster_id=args.cluster_id or await _cluster_id(api),
            driver_cluster_role=args.driver_cluster_role,
            node_lost_timeout_ms=node_lost_ms,
            rollout_pause_ms=pause_ms,
            version=_version(),
            shrink_after_ms=shrink_after_ms,
            run_as_user=None if args.run_as_user == _ASSIGNED_BY_CLUSTER else int(args.run_as_user),
            supports_resize="pods/resize" in await api.resources("v1"),
        )
        nodes = await _can_watch_nodes(api)
        rollout = RolloutTracker(template_hash(settings), limit, store, _now)
        store.on_sink = rollout.put
        reconciler = Reconciler(
            Observer(
                api,
                store,
                reports,
                PodEventReader(api),
                TemplateChecker(api, settings),
                OwnerChecker(api, settings.cluster_id),
                settings.sink_defaults,
            ),
            DecisionApplier(api, store, _now),
            settings,
            _now,
            rollout,
            resync_s=resync_s,
        )
        stop, started = asyncio.Event(), asyncio.Event()
        _stop_on_signals(stop)

        async def work() -> None:
            watching = kopf.operator(
                registry=handlers.build_registry(client, store, queue, nodes=nodes),
                settings=handlers.kopf_settings(args.selector),
                standalone=True,
                clusterwide=not args.namespace,
                namespaces=args.namespace or (),
                ready_flag=started,
                stop_flag=stop,
            )
            await _run_workers(watching, started, int(args.workers), queue, reconciler, heartbeat, stop)

        async with serve(int(args.port), heartbeat, store, queue, rollout) as port:
            _log.info("serving metrics and health on port %d", port)
            if args.lease_namespace:
                heartbeat.waiting = True
                working = lease.run_while_leading(lease.Lease(api, args.lease_namespace, args.lease_name), work)
            else:
                working = work()
            return await _run_until_stopped(stop, working, heartbeat)


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
    _log.error("lost the lease or the watches: exiting for a restart")
    return EXIT_LEASE_LOST


async def _beat_while_waiting(heartbeat: WorkerHeartbeat) -> None:
    """Beats for the workers until they start: waiting for the Lease is healthy."""
    while not heartbeat.ready:
        heartbeat.beat()
        await asyncio.sleep(_HEARTBEAT_S)


def _stop_on_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _run_workers(
    watching: Coroutine[Any, Any, None],
    started: asyncio.Event,
    workers: int,
    queue: WorkQueue[SinkKey],
    reconciler: Reconciler,
    heartbeat: WorkerHeartbeat,
    stop: asyncio.Event,
) -> None:
    """Runs watches and workers until one of them ends. Kopf delivers events after all lists are complete."""

    async def worker() -> None:
        while True:
            heartbeat.beat()
            try:
                key = await asyncio.wait_for(queue.take(), _HEARTBEAT_S)
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
        _stop_on_signals(stop)  # again: Kopf replaced the handlers
        heartbeat.ready, heartbeat.waiting = True, False
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


async def _load_config() -> None:
    try:
        config.load_incluster_config()
    except config.ConfigException:
        await config.load_kube_config(config_file=os.environ.get("KUBECONFIG"))


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
