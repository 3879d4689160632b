"""`logs`: the log of the driver, of the executors or of the operation pod, and how the previous attempt ended."""

from __future__ import annotations

import argparse

from s3sink_operator import names
from s3sink_operator.kubectl import view
from s3sink_operator.kubectl.client import RESOURCE, Kubectl
from s3sink_operator.kubectl.commands.arguments import Commands, add_name
from s3sink_operator.kubectl.console import fail, note, write
from s3sink_operator.names import Component
from s3sink_operator.objects import CONTAINER
from s3sink_operator.types import Json, is_terminating, to_timestamp


def add_parser(commands: Commands, common: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    command = commands.add_parser("logs", parents=[common], help="show the log of the driver")
    add_name(command)
    command.add_argument("-f", "--follow", action="store_true", help="follow the log")
    command.add_argument("--tail", metavar="LINES", help="show only the last LINES lines")
    command.add_argument(
        "--since", metavar="DURATION", help="show only the lines of the last DURATION, such as 5m or 2h"
    )
    which = command.add_mutually_exclusive_group()
    which.add_argument("-p", "--previous", action="store_true", help="show how the previous attempt ended")
    which.add_argument(
        "--executors", action="store_true", help="show the logs of the executors, each line with its pod"
    )
    which.add_argument(
        "--operation",
        action="store_true",
        help="show the log of the operation pod, which publishes objects or resets offsets",
    )
    command.set_defaults(run=run)


def run(kubectl: Kubectl, args: argparse.Namespace) -> int:
    """Shows the log. Returns the exit code of kubectl."""
    sink = kubectl.get(RESOURCE, args.name)
    if args.previous:
        return _show_previous_attempt(sink)
    flags = ["--follow"] if args.follow else []
    flags += [f"--{name}={value}" for name, value in (("tail", args.tail), ("since", args.since)) if value is not None]
    if args.executors:
        selector = names.selector(args.name, Component.EXECUTOR)
        all_lines = [] if args.tail is not None else ["--tail=-1"]  # with a selector kubectl shows 10 lines by default
        return kubectl.show("logs", "-l", selector, "--prefix", "--max-log-requests=100", *all_lines, *flags)
    name = names.operation_pod_name(args.name) if args.operation else names.driver_pod_name(args.name)
    pod = kubectl.find("pods", name)
    if pod is None:
        ready = view.condition(sink, "Ready")
        reason = view.stale_reason(sink) if ready is None else view.condition_text(ready)
        return fail(f"{args.name}: pod {name} not found; {reason}")
    if is_terminating(pod):
        note(f"the pod {name} is terminating")
    return kubectl.show("logs", name, "-c", CONTAINER, *flags)


def _show_previous_attempt(sink: Json) -> int:
    """Prints how the previous attempt ended. Its log was deleted with its pod."""
    attempts = view.status_of(sink).attempts or ()
    attempt = next((attempt for attempt in attempts if attempt.end_time is not None), None)
    if attempt is None or attempt.end_time is None:
        return fail(f"{sink['metadata']['name']}: no attempt has ended")
    code = "" if attempt.exit_code is None else f", exit code {attempt.exit_code}"
    end = to_timestamp(attempt.end_time)
    write(f"attempt {attempt.number} ended at {end}{code}: {attempt.reason}: {attempt.message}")
    note("its log was deleted with its pod; a log collector of the cluster may have it")
    return 0
