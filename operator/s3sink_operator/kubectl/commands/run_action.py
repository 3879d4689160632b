"""What all commands that change a sink have in common: they write annotations, and may wait for the result."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from s3sink_operator import names
from s3sink_operator.kubectl import view
from s3sink_operator.kubectl.actions import Action
from s3sink_operator.kubectl.client import RESOURCE, Kubectl, KubectlError
from s3sink_operator.kubectl.commands.arguments import add_name, add_output, prints_json
from s3sink_operator.kubectl.console import fail, note, write, write_json
from s3sink_operator.kubectl.wait import WaitResult, wait_for
from s3sink_operator.types import Json
from sink_job.api.units.quantities import parse_duration


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of a command that changes a sink."""
    add_name(command)
    command.add_argument("--wait", action="store_true", help="wait until the action is completed")
    command.add_argument(
        "--timeout", metavar="DURATION", type=_seconds, default=300.0, help="timeout of --wait (default: 5m)"
    )
    add_output(command)


def new_nonce() -> str:
    """A text that no earlier action has: the time in microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def run_action(kubectl: Kubectl, args: argparse.Namespace, action: Action) -> int:
    """Writes the annotations of the action and, with --wait, waits until it is completed."""
    before = kubectl.annotate(args.name, action.annotations)
    request: Json = {"name": args.name, "action": args.command, "annotations": dict(action.annotations)}
    if not args.wait:
        if prints_json(args):
            write_json(request)
        else:
            write(f"{args.name} {action.progress_message}")
        return 0
    note(f"{args.name} {action.progress_message}")
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
        report=lambda text: note(f"  {text}"),
    )
    done = outcome.result is WaitResult.DONE
    if prints_json(args):
        write_json(request | {"done": done, "message": outcome.message} | view.as_data(outcome.sink))
    elif done:
        result = action.result(outcome.sink)
        write(f"{args.name}: {args.command} completed" + (f": {result}" if result else ""))
    if not done:
        fail(f"{args.name}: {outcome.message}")
    return outcome.result.value


def _seconds(text: str) -> float:
    try:
        return parse_duration(text) / 1000
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
