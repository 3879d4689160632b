"""Calls kubectl, and turns its errors into messages with the action to take."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from s3sink_operator import names
from s3sink_operator.nesting import parse_json
from s3sink_operator.types import Json
from sink_job.api.spec import GROUP, KIND

RESOURCE: Final = f"{names.PLURAL}.{GROUP}"
FIELD_MANAGER: Final = "kubectl-s3sink"

_FROM_SERVER: Final = re.compile(r"Error from server \((?P<reason>\w+)\): (?P<message>.*)", re.DOTALL)
_VERB: Final = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[\w./-]+)"')
_LOG_LINE: Final = re.compile(r"[EWI]\d{4} \d\d:\d\d:\d\d")  # one line for each attempt of kubectl, before its error
_KUBECTL_TIMEOUT_S: Final = 30.0
_NO_KIND: Final = (f'resource type "{names.PLURAL}', f'no matches for kind "{KIND}"')


class KubectlError(Exception):
    """A failed call of kubectl. `reason`: of the API server (NotFound, Forbidden, …), or empty."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)

    @property
    def is_transient(self) -> bool:
        """Whether a retry may succeed: the API server was not reached, or is busy."""
        return self.reason in ("", "InternalError", "ServiceUnavailable", "Timeout", "TooManyRequests")


@dataclass(frozen=True)
class Kubectl:
    """kubectl with the flags for cluster, namespace and user. Calls raise KubectlError."""

    program: str
    flags: Sequence[str] = ()

    def get(self, kind: str, name: str) -> Json:
        """One object."""
        return self._json("get", kind, name)

    def find(self, kind: str, name: str) -> Json | None:
        """One object; None if it does not exist."""
        found = self._text("get", kind, name, "-o", "json", "--ignore-not-found")
        return dict(parse_json(found)) if found.strip() else None

    def sinks(self, *, all_namespaces: bool, selector: str | None) -> list[Json]:
        """All S3Sinks of the namespace, or of the cluster."""
        words = [*(["--all-namespaces"] if all_namespaces else []), *(["--selector", selector] if selector else [])]
        return list(self._json("get", RESOURCE, *words)["items"])

    def raw(self, path: str) -> str:
        """The content of a path of the API server."""
        return self._text("get", "--raw", path)

    def annotate(self, sink: str, annotations: Mapping[str, str | None]) -> Json:
        """Sets annotations of a sink, None removes one. Returns the changed sink."""
        patch = json.dumps({"metadata": {"annotations": dict(annotations)}})
        return self._json("patch", RESOURCE, sink, "--type=merge", "-p", patch, f"--field-manager={FIELD_MANAGER}")

    def show(self, *words: str) -> int:
        """Runs kubectl with the input and output of this process. Returns its exit code."""
        try:
            return subprocess.call([self.program, *self.flags, *words])
        except KeyboardInterrupt:
            return 130

    def namespace(self) -> str:
        """The namespace of the current context."""
        found = self._text("config", "view", "--minify", "-o", "jsonpath={..namespace}").strip()
        return found or "default"

    def _json(self, *words: str) -> Json:
        return dict(parse_json(self._text(*words, "-o", "json")))

    def _text(self, *words: str) -> str:
        command = [self.program, *self.flags, *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_KUBECTL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise KubectlError(
                "Timeout", f"kubectl {words[0]} did not answer within {_KUBECTL_TIMEOUT_S:g} s"
            ) from None
        if done.returncode:
            raise parse_error(done.stderr)
        return done.stdout


def parse_error(stderr: str) -> KubectlError:
    """The error for the standard error of kubectl, with the action to take if it is known."""
    lines = [line for line in stderr.splitlines() if not _LOG_LINE.match(line)]
    text = "\n".join(lines).strip().removeprefix("error: ")
    if any(words in text for words in _NO_KIND):
        action = (
            "install the chart s3sink-operator, or apply its CustomResourceDefinition (crds/s3sinks.s3sink.io.yaml)"
        )
        return KubectlError("NoKind", f"the cluster has no S3Sink resource: {action}")
    found = _FROM_SERVER.search(text)
    if found is None:
        return KubectlError("", text or "kubectl failed without a message")
    reason, message = found["reason"], " ".join(found["message"].split())
    lacks = _VERB.search(message)
    if reason == "Forbidden" and lacks is not None:
        hint = f'you need the verb "{lacks["verb"]}" on {_named(lacks["resource"])}'
        return KubectlError(reason, f"{message}: {hint}")
    return KubectlError(reason, message)


def _named(resource: str) -> str:
    """A resource with its group, and the source of its permissions."""
    if resource == names.PLURAL:
        return f"{RESOURCE} (with rbac.aggregate the chart adds it to the roles view and edit)"
    return resource
