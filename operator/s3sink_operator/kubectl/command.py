"""`kubectl s3sink`: the command line, the calls, and the exit code."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TextIO

from s3sink_operator import names
from s3sink_operator.kubectl import actions, explain, view
from s3sink_operator.kubectl.actions import Action, ActionNotAllowed
from s3sink_operator.kubectl.client import RESOURCE, Kubectl, KubectlError
from s3sink_operator.kubectl.formatting import printable
from s3sink_operator.kubectl.partitions import all_partitions
from s3sink_operator.kubectl.wait import WaitResult, wait_for
from s3sink_operator.names import Component
from s3sink_operator.nesting import deep_json
from s3sink_operator.objects import CONTAINER
from s3sink_operator.progress_model import SinkProgress
from s3sink_operator.types import Json, is_terminating, to_timestamp
from sink_job.api import unsupported
from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.errors import InvalidSpec
from sink_job.api.quantities import parse_duration

EXIT_CODES: Final = """\
exit codes:
   0  done
   1  kubectl or the API server rejected the request, or the object does not exist
   2  invalid command line
   3  --wait: timeout
   4  --wait: the sink is stalled and needs user action
"""
_ACTIONS: Final = {
    "restart": "restart the driver; it resumes from the ledger",
    "pause": "terminate the driver; open objects stay open",
    "resume": "start the sink again",
    "stop": "terminate the driver and publish the open objects",
}
_GLOBAL: Final = (
    "context", "kubeconfig", "cluster", "user", "server", "token", "as", "as-group", "as-uid", "certificate-authority",
    "request-timeout", "tls-server-name",
)  # fmt: skip
"""Flags that are passed to kubectl."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("flags of kubectl")
    group.add_argument("-n", "--namespace", metavar="NAMESPACE", help="default: that of the context")
    for name in _GLOBAL:
        group.add_argument(f"--{name}", metavar=name.rpartition("-")[2].upper(), help=argparse.SUPPRESS)
    group.add_argument("--insecure-skip-tls-verify", action="store_true", help=argparse.SUPPRESS)

    top = argparse.ArgumentParser(
        prog="kubectl s3sink",
        description="Shows S3Sinks and requests actions. Every command accepts the flags of kubectl for cluster and "
        "user, such as -n, --context, --kubeconfig and --as.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)

    status = commands.add_parser(
        "status", parents=[common], help="show partitions, lag, memory, the last failure and the next attempt"
    )
    status.add_argument(
        "name", metavar="NAME", nargs="?", help="show one sink in detail; default: one line for each sink"
    )
    status.add_argument("-A", "--all-namespaces", action="store_true", help="show the sinks of all namespaces")
    status.add_argument("-l", "--selector", metavar="LABELS", help="show the sinks with these labels")
    status.add_argument(
        "--all-partitions",
        action="store_true",
        help="with NAME: all topic-partitions, from the driver's report (requires get on pods/proxy) or the status",
    )
    _output(status)

    explained = commands.add_parser(
        "explain", parents=[common], help="show the settings of a sink and whether its spec or the operator sets them"
    )
    explained.add_argument("name", metavar="NAME")
    _output(explained)

    for name, about in _ACTIONS.items():
        _action(commands.add_parser(name, parents=[common], help=about, description=f"{about[0].upper()}{about[1:]}."))

    reset = commands.add_parser(
        "reset-offsets",
        parents=[common],
        help="start from other offsets; the sink has to be Stopped",
        description="Start from other offsets. Records may be copied twice or skipped, so --yes is required.",
    )
    _action(reset)
    to = [each.value for each in ResetTo]
    reset.add_argument("--to", required=True, type=_in_any_case(to), choices=to, help="start position")
    reset.add_argument(
        "--timestamp", metavar="TIME", help="with --to Timestamp: a time such as 2025-11-03T10:00:00Z, or ms since 1970"
    )
    reset.add_argument(
        "--offset",
        metavar="TOPIC:PARTITION:OFFSET",
        action="append",
        default=[],
        help="with --to Offsets: a start offset; repeatable",
    )
    existing = [str(each.value) for each in unsupported.CHOICES["spec", "offsets", "reset", "onExisting"]]
    reset.add_argument(
        "--on-existing",
        type=_in_any_case(existing),
        choices=existing,
        default=OnExisting.FAIL.value,
        help="what happens if objects hold records at or above the new offsets (default: Fail)",
    )
    reset.add_argument("--yes", action="store_true", help="send the request; without it the request is only shown")

    logs = commands.add_parser("logs", parents=[common], help="show the log of the driver")
    logs.add_argument("name", metavar="NAME")
    logs.add_argument("-f", "--follow", action="store_true", help="follow the log")
    logs.add_argument("--tail", metavar="LINES", help="show only the last LINES lines")
    logs.add_argument("--since", metavar="DURATION", help="show only the lines of the last DURATION, such as 5m or 2h")
    which = logs.add_mutually_exclusive_group()
    which.add_argument("-p", "--previous", action="store_true", help="show how the previous attempt ended")
    which.add_argument(
        "--executors", action="store_true", help="show the logs of the executors, each line with its pod"
    )
    which.add_argument(
        "--operation",
        action="store_true",
        help="show the log of the operation pod, which publishes objects or resets offsets",
    )
    return top


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")


def _action(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME")
    command.add_argument("--wait", action="store_true", help="wait until the action is completed")
    command.add_argument(
        "--timeout", metavar="DURATION", type=_seconds, default=300.0, help="timeout of --wait (default: 5m)"
    )
    _output(command)


def _seconds(text: str) -> float:
    try:
        return parse_duration(text) / 1000
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command in `argv` (default: that of this process). Returns its exit code."""
    args = parser().parse_args(argv)
    program = os.environ.get("KUBECTL") or shutil.which("kubectl")
    if program is None:
        return _fail("kubectl not found: install it on PATH, or set the environment variable KUBECTL")
    kubectl = Kubectl(program, _flags(args))
    try:
        with deep_json():
            return _run(kubectl, args)
    except ActionNotAllowed as error:
        return _fail(f"{args.name}: {error}")
    except KubectlError as error:
        if error.reason == "NotFound" and RESOURCE in str(error):
            return _fail(_not_found_message(kubectl, args))
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{program}: {error.strerror}")
    except KeyboardInterrupt:
        return 130


def _run(kubectl: Kubectl, args: argparse.Namespace) -> int:
    match args.command:
        case "status":
            return _status(kubectl, args)
        case "logs":
            return _logs(kubectl, args)
        case "explain":
            return _explain(kubectl, args)
        case "reset-offsets":
            return _reset(kubectl, args)
    sink = kubectl.get(RESOURCE, args.name)
    action_of = {
        "restart": lambda: actions.restart(sink, _stamp()),
        "pause": lambda: actions.pause(sink),
        "resume": lambda: actions.resume(sink),
        "stop": lambda: actions.stop(sink),
    }
    return _run_action(kubectl, args, action_of[args.command]())


def _status(kubectl: Kubectl, args: argparse.Namespace) -> int:
    now = time.time_ns() // 1_000_000
    if args.name is not None:
        if args.all_namespaces or args.selector:
            return _fail("NAME cannot be combined with -A or -l", code=2)
        return _status_of_one(kubectl, args, now)
    if args.all_partitions:
        return _fail("--all-partitions requires NAME", code=2)
    sinks = kubectl.sinks(all_namespaces=args.all_namespaces, selector=args.selector)
    if args.output == "json":
        _print(_json({"items": [view.as_data(sink) for sink in sinks]}))
    elif sinks:
        _print(view.overview(sinks, now, all_namespaces=args.all_namespaces))
    else:
        where = "" if args.all_namespaces else f" in namespace {args.namespace or kubectl.namespace()}"
        _print(f"No S3Sinks found{where}.", file=sys.stderr)
    return 0


def _status_of_one(kubectl: Kubectl, args: argparse.Namespace, now: int) -> int:
    sink = kubectl.get(RESOURCE, args.name)
    data, shown = view.as_data(sink), None
    if args.all_partitions:
        found = all_partitions(kubectl, sink, view.status_of(sink).progress or SinkProgress())
        data["allPartitions"], shown = found.as_data(), found.partitions
        if found.note:
            _print(found.note, file=sys.stderr)
    _print(_json(data) if args.output == "json" else view.detail(sink, now, shown))
    return 0


def _explain(kubectl: Kubectl, args: argparse.Namespace) -> int:
    sink = kubectl.get(RESOURCE, args.name)
    try:
        _print(_json(explain.as_data(sink)) if args.output == "json" else explain.explanation(sink))
    except InvalidSpec as error:
        return _fail(f"{args.name}: the spec is invalid: {error}")
    return 0


def _in_any_case(values: Sequence[str]) -> Callable[[str], str]:
    """A type of arguments that accepts these values in upper and lower case."""
    return lambda text: next((each for each in values if each.lower() == text.lower()), text)


def _reset(kubectl: Kubectl, args: argparse.Namespace) -> int:
    request = actions.reset_request(
        _stamp(),
        to=ResetTo(args.to),
        on_existing=OnExisting(args.on_existing),
        timestamp=args.timestamp,
        offsets=args.offset,
    )
    action = actions.reset_offsets(kubectl.get(RESOURCE, args.name), request)
    if not args.yes:
        return _fail(f"{args.name}: request {json.dumps(request)}; nothing was changed, use --yes to send it")
    return _run_action(kubectl, args, action)


def _run_action(kubectl: Kubectl, args: argparse.Namespace, action: Action) -> int:
    before = kubectl.annotate(args.name, action.annotations)
    request: Json = {"name": args.name, "action": args.command, "annotations": dict(action.annotations)}
    as_json = args.output == "json"
    if not args.wait:
        _print(_json(request) if as_json else f"{args.name} {action.progress_message}")
        return 0
    _print(f"{args.name} {action.progress_message}", file=sys.stderr)
    driver = names.driver_pod_name(args.name)

    def poll() -> tuple[Json, Json | None] | None:
        try:
            return kubectl.get(RESOURCE, args.name), kubectl.find("pods", driver)
        except KubectlError as error:
            if error.is_transient:
                return None
            raise

    outcome = wait_for(
        action,
        before,
        poll,
        timeout_s=args.timeout,
        clock=time.monotonic,
        sleep=time.sleep,
        report=lambda text: _print(f"  {text}", file=sys.stderr),
    )
    done = outcome.result is WaitResult.DONE
    if as_json:
        _print(_json(request | {"done": done, "message": outcome.message} | view.as_data(outcome.sink)))
    elif done:
        result = action.result(outcome.sink)
        _print(f"{args.name}: {args.command} completed" + (f": {result}" if result else ""))
    if not done:
        _fail(f"{args.name}: {outcome.message}")
    return outcome.result.value


def _logs(kubectl: Kubectl, args: argparse.Namespace) -> int:
    sink = kubectl.get(RESOURCE, args.name)
    if args.previous:
        return _previous(sink)
    words = [*(["--follow"] if args.follow else [])]
    words += [f"--{name}={value}" for name in ("tail", "since") if (value := getattr(args, name)) is not None]
    if args.executors:
        selector = names.selector(args.name, Component.EXECUTOR)
        found = [] if args.tail is not None else ["--tail=-1"]
        return kubectl.show("logs", "-l", selector, "--prefix", "--max-log-requests=100", *found, *words)
    pod = names.operation_pod_name(args.name) if args.operation else names.driver_pod_name(args.name)
    found_pod = kubectl.find("pods", pod)
    if found_pod is None:
        ready = view.condition(sink, "Ready")
        reason = view.stale_reason(sink) if ready is None else view.condition_text(ready)
        return _fail(f"{args.name}: pod {pod} not found; {reason}")
    if is_terminating(found_pod):
        _print(f"the pod {pod} is terminating", file=sys.stderr)
    return kubectl.show("logs", pod, "-c", CONTAINER, *words)


def _previous(sink: Json) -> int:
    """Prints how the previous attempt ended. Its log was deleted with its pod."""
    attempt = next((each for each in view.status_of(sink).attempts or () if each.end_time is not None), None)
    if attempt is None or attempt.end_time is None:
        return _fail(f"{sink['metadata']['name']}: no attempt has ended")
    code = "" if attempt.exit_code is None else f", exit code {attempt.exit_code}"
    end = to_timestamp(attempt.end_time)
    _print(f"attempt {attempt.number} ended at {end}{code}: {attempt.reason}: {attempt.message}")
    _print("its log was deleted with its pod; a log collector of the cluster may have it", file=sys.stderr)
    return 0


def _not_found_message(kubectl: Kubectl, args: argparse.Namespace) -> str:
    namespace = args.namespace or kubectl.namespace()
    return f"S3Sink {args.name} not found in namespace {namespace}; kubectl s3sink status -A lists all sinks"


def _flags(args: argparse.Namespace) -> list[str]:
    options = {name: getattr(args, name.replace("-", "_")) for name in ("namespace", *_GLOBAL)}
    flags = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return [*flags, *(["--insecure-skip-tls-verify"] if args.insecure_skip_tls_verify else [])]


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _json(data: Json) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


def _print(text: str, *, file: TextIO | None = None) -> None:
    print(printable(text), file=file)


def _fail(message: str, *, code: int = 1) -> int:
    _print(f"kubectl s3sink: {message}", file=sys.stderr)
    return code
