"""The command line of the operator: its flags, and the settings that are read from them. Each flag has an environment
variable."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from s3sink_operator import names
from s3sink_operator.config.operator_config import OperatorConfig, read_config
from s3sink_operator.config.sink_defaults import SinkDefaults
from s3sink_operator.config.sink_restrictions import SinkRestrictions
from s3sink_operator.rollout.sink_rollout import MaxUnavailable
from sink_job.api.units.quantities import parse_duration, parse_size

_ENVIRONMENT: Final = "S3SINK_OPERATOR_"
_ASSIGNED_BY_CLUSTER: Final = "Cluster"
_MIN_RESYNC_S: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the texts of the flags mean. Fields in `_ms` are milliseconds, `resync_s` is seconds. `run_as_user`: None
    lets the cluster assign it."""

    resync_s: float
    node_lost_ms: int
    pause_ms: int
    shrink_after_ms: int
    limit: MaxUnavailable
    defaults: SinkDefaults
    restrictions: SinkRestrictions
    run_as_user: int | None
    namespace_bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags. Each has an environment variable: `--lease-name` is S3SINK_OPERATOR_LEASE_NAME."""
    flag = partial(_add_flag, parser)
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
    flag("config", None, "YAML file: defaults for sinks (sinkDefaults), and what a sink may set (sinkRestrictions)")
    flag("driver-cluster-role", "s3sink-driver", "ClusterRole that drivers are bound to in their namespace")
    flag(
        "cluster-id",
        None,
        "cluster name recorded in ledger ownership claims; default: the uid of the namespace kube-system",
    )
    flag("lease-namespace", None, "namespace of the Lease; default: no leader election")
    flag("lease-name", names.LEASE_NAME, "name of the Lease")
    flag("port", "8080", "port of /metrics, /healthz and /readyz", type=_number(0, 65535))
    flag("log", "text", "log format: text or json", choices=["text", "json"])
    _add_limits(flag)


def _add_limits(flag: Callable[..., None]) -> None:
    """Adds the flags of intervals, numbers and sizes."""
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
    flag(
        "namespace-memory",
        "64Mi",
        "memory for the S3Sinks of one namespace; those above it are not operated (reason NamespaceTooLarge)",
    )
    flag("workers", "16", "maximum number of concurrent reconciles", type=_number(1, 1000))
    flag(
        "report-by",
        "Pod",
        "how reports of drivers are fetched: Pod (directly) or Proxy (through the API server)",
        choices=["Pod", "Proxy"],
    )


def _add_flag(parser: argparse.ArgumentParser, name: str, default: str | None, text: str, **more: Any) -> None:
    variable = _ENVIRONMENT + name.upper().replace("-", "_")
    parser.add_argument(f"--{name}", default=os.environ.get(variable, default), help=text, **more)


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= (found := int(text[:9])) <= most:
            return found
        raise argparse.ArgumentTypeError(f"{text} is not a number from {least} to {most}")

    return parse


def read_options(args: argparse.Namespace) -> Options:
    """The settings of the flags. Raises ValueError with the name of a wrong flag."""
    if not args.image:
        raise ValueError("--image is required: the default image of jobs")
    try:
        resync_s = parse_duration(args.resync) / 1000
        node_lost_ms = parse_duration(args.node_lost_timeout)
        pause_ms = parse_duration(args.rollout_pause)
        shrink_after_ms = parse_duration(args.shrink_after)
        if resync_s < _MIN_RESYNC_S:
            raise ValueError(f"--resync {args.resync} is below {_MIN_RESYNC_S} s")
    except ValueError as error:
        raise ValueError(f"--resync, --node-lost-timeout, --rollout-pause, --shrink-after: {error}") from None
    config = OperatorConfig() if args.config is None else _config(args.config)
    return Options(
        resync_s=resync_s,
        node_lost_ms=node_lost_ms,
        pause_ms=pause_ms,
        shrink_after_ms=shrink_after_ms,
        limit=_limit(args.rollout_max_unavailable),
        defaults=config.sink_defaults,
        restrictions=config.sink_restrictions,
        run_as_user=_run_as_user(args.run_as_user),
        namespace_bytes=_size(args.namespace_memory),
    )


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ValueError(f"--namespace-memory: {error}") from None


def _limit(text: str) -> MaxUnavailable:
    try:
        return MaxUnavailable.parse(text)
    except ValueError as error:
        raise ValueError(f"--rollout-max-unavailable: {error}") from None


def _config(path: str) -> OperatorConfig:
    try:
        return read_config(Path(path).read_text())
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"--config {path}: {cause}") from None


def _run_as_user(text: str) -> int | None:
    if text == _ASSIGNED_BY_CLUSTER:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"--run-as-user: {text} is neither a uid nor {_ASSIGNED_BY_CLUSTER}")
    return int(text)
