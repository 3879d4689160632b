"""`reset-offsets`: start from other offsets."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence

from s3sink_operator.kubectl import actions
from s3sink_operator.kubectl.client import RESOURCE, Kubectl
from s3sink_operator.kubectl.commands.arguments import Commands
from s3sink_operator.kubectl.commands.run_action import add_arguments, new_nonce, run_action
from s3sink_operator.kubectl.console import fail
from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.rules import unsupported


def add_parser(commands: Commands, common: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    command = commands.add_parser(
        "reset-offsets",
        parents=[common],
        help="start from other offsets; the sink has to be Stopped",
        description="Start from other offsets. Records may be copied twice or skipped, so --yes is required.",
    )
    add_arguments(command)
    to = [choice.value for choice in ResetTo]
    command.add_argument("--to", required=True, type=_in_any_case(to), choices=to, help="start position")
    command.add_argument(
        "--timestamp", metavar="TIME", help="with --to Timestamp: a time such as 2025-11-03T10:00:00Z, or ms since 1970"
    )
    command.add_argument(
        "--offset",
        metavar="TOPIC:PARTITION:OFFSET",
        action="append",
        default=[],
        help="with --to Offsets: a start offset; repeatable",
    )
    supported = [str(choice.value) for choice in unsupported.CHOICES["spec", "offsets", "reset", "onExisting"]]
    command.add_argument(
        "--on-existing",
        type=_in_any_case(supported),
        choices=supported,
        default=OnExisting.FAIL.value,
        help="what happens if objects hold records at or above the new offsets (default: Fail)",
    )
    command.add_argument("--yes", action="store_true", help="send the request; without it the request is only shown")
    command.set_defaults(run=run)


def run(kubectl: Kubectl, args: argparse.Namespace) -> int:
    """Requests the reset; without --yes only shows the request."""
    request = actions.reset_request(
        new_nonce(),
        to=ResetTo(args.to),
        on_existing=OnExisting(args.on_existing),
        timestamp=args.timestamp,
        offsets=args.offset,
    )
    action = actions.reset_offsets(kubectl.get(RESOURCE, args.name), request)
    if not args.yes:
        return fail(f"{args.name}: request {json.dumps(request)}; nothing was changed, use --yes to send it")
    return run_action(kubectl, args, action)


def _in_any_case(values: Sequence[str]) -> Callable[[str], str]:
    """A type of arguments that accepts these values in upper and lower case."""
    return lambda text: next((value for value in values if value.lower() == text.lower()), text)
