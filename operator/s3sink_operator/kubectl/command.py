"""`kubectl s3sink`: the command line, the call of a command, and the exit code."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from typing import Final

from s3sink_operator.kubectl.actions import ActionNotAllowed
from s3sink_operator.kubectl.client import RESOURCE, Kubectl, KubectlError
from s3sink_operator.kubectl.commands import (
    explain_command,
    lifecycle_commands,
    logs_command,
    reset_offsets_command,
    skip_command,
    status_command,
)
from s3sink_operator.kubectl.commands.arguments import Run
from s3sink_operator.kubectl.console import fail
from s3sink_operator.nesting import deep_json

EXIT_CODES: Final = """\
exit codes:
   0  done
   1  kubectl or the API server rejected the request, or the object does not exist
   2  invalid command line
   3  --wait: timeout
   4  --wait: the sink is stalled and needs user action
"""
_GLOBAL: Final = (
    "context", "kubeconfig", "cluster", "user", "server", "token", "as", "as-group", "as-uid", "certificate-authority",
    "request-timeout", "tls-server-name",
)  # fmt: skip
"""Flags that are passed to kubectl."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="kubectl s3sink",
        description="Shows S3Sinks and requests actions. Every command accepts the flags of kubectl for cluster and "
        "user, such as -n, --context, --kubeconfig and --as.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    common = _kubectl_flags()
    status_command.add_parser(commands, common)
    explain_command.add_parser(commands, common)
    lifecycle_commands.add_parsers(commands, common)
    reset_offsets_command.add_parser(commands, common)
    skip_command.add_parser(commands, common)
    logs_command.add_parser(commands, common)
    return top


def _kubectl_flags() -> argparse.ArgumentParser:
    """The flags of kubectl that every command accepts."""
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("flags of kubectl")
    group.add_argument("-n", "--namespace", metavar="NAMESPACE", help="default: that of the context")
    for name in _GLOBAL:
        group.add_argument(f"--{name}", metavar=name.rpartition("-")[2].upper(), help=argparse.SUPPRESS)
    group.add_argument("--insecure-skip-tls-verify", action="store_true", help=argparse.SUPPRESS)
    return common


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command in `argv` (default: that of this process). Returns its exit code."""
    args = parser().parse_args(argv)
    program = os.environ.get("KUBECTL") or shutil.which("kubectl")
    if program is None:
        return fail("kubectl not found: install it on PATH, or set the environment variable KUBECTL")
    kubectl = Kubectl(program, _flags(args))
    try:
        with deep_json():
            run: Run = args.run
            return run(kubectl, args)
    except ActionNotAllowed as error:
        return fail(f"{args.name}: {error}")
    except KubectlError as error:
        if error.reason == "NotFound" and RESOURCE in str(error):
            return fail(_not_found_message(kubectl, args))
        return fail(str(error))
    except OSError as error:
        return fail(f"{program}: {error.strerror}")
    except KeyboardInterrupt:
        return 130


def _not_found_message(kubectl: Kubectl, args: argparse.Namespace) -> str:
    namespace = args.namespace or kubectl.namespace()
    return f"S3Sink {args.name} not found in namespace {namespace}; kubectl s3sink status -A lists all sinks"


def _flags(args: argparse.Namespace) -> list[str]:
    options = {name: getattr(args, name.replace("-", "_")) for name in ("namespace", *_GLOBAL)}
    flags = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return [*flags, *(["--insecure-skip-tls-verify"] if args.insecure_skip_tls_verify else [])]
