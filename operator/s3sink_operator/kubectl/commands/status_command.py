"""`status`: one line for each sink, or one sink in detail."""

from __future__ import annotations

import argparse
import time

from s3sink_operator.kubectl import view
from s3sink_operator.kubectl.client import RESOURCE, Kubectl
from s3sink_operator.kubectl.commands.arguments import Commands, add_output, prints_json
from s3sink_operator.kubectl.console import fail, note, write, write_json
from s3sink_operator.kubectl.partitions import all_partitions
from s3sink_operator.status.progress_model import SinkProgress


def add_parser(commands: Commands, common: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    command = commands.add_parser(
        "status", parents=[common], help="show partitions, lag, memory, the last failure and the next attempt"
    )
    command.add_argument(
        "name", metavar="NAME", nargs="?", help="show one sink in detail; default: one line for each sink"
    )
    command.add_argument("-A", "--all-namespaces", action="store_true", help="show the sinks of all namespaces")
    command.add_argument("-l", "--selector", metavar="LABELS", help="show the sinks with these labels")
    command.add_argument(
        "--all-partitions",
        action="store_true",
        help="with NAME: all topic-partitions, from the driver's report (requires get on pods/proxy) or the status",
    )
    add_output(command)
    command.set_defaults(run=run)


def run(kubectl: Kubectl, args: argparse.Namespace) -> int:
    """Shows the status of the named sink, or of all."""
    now = time.time_ns() // 1_000_000
    if args.name is not None:
        if args.all_namespaces or args.selector:
            return fail("NAME cannot be combined with -A or -l", code=2)
        return _show_sink(kubectl, args, now)
    if args.all_partitions:
        return fail("--all-partitions requires NAME", code=2)
    return _show_sinks(kubectl, args, now)


def _show_sinks(kubectl: Kubectl, args: argparse.Namespace, now: int) -> int:
    sinks = kubectl.sinks(all_namespaces=args.all_namespaces, selector=args.selector)
    if prints_json(args):
        write_json({"items": [view.as_data(sink) for sink in sinks]})
    elif sinks:
        write(view.overview(sinks, now, all_namespaces=args.all_namespaces))
    else:
        where = "" if args.all_namespaces else f" in namespace {args.namespace or kubectl.namespace()}"
        note(f"No S3Sinks found{where}.")
    return 0


def _show_sink(kubectl: Kubectl, args: argparse.Namespace, now: int) -> int:
    sink = kubectl.get(RESOURCE, args.name)
    data, partitions = view.as_data(sink), None
    if args.all_partitions:
        listed = all_partitions(kubectl, sink, view.status_of(sink).progress or SinkProgress())
        data["allPartitions"], partitions = listed.as_data(), listed.partitions
        if listed.note:
            note(listed.note)
    if prints_json(args):
        write_json(data)
    else:
        write(view.detail(sink, now, partitions))
    return 0
