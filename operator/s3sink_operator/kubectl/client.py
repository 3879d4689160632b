"""Calls of kubectl, and what its refusals mean to the person who sits before it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from s3sink_operator import names
from s3sink_operator.types import Json
from sink_job.api.spec import GROUP, KIND

RESOURCE: Final = f"{names.PLURAL}.{GROUP}"
FIELD_MANAGER: Final = "kubectl-s3sink"

_FROM_SERVER: Final = re.compile(r"Error from server \((?P<reason>\w+)\): (?P<message>.*)", re.DOTALL)
_VERB: Final = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[\w./-]+)"')
_LOG_LINE: Final = re.compile(r"[EWI]\d{4} \d\d:\d\d:\d\d")  # each try of kubectl's, before its last word
_KUBECTL_TIMEOUT_S: Final = 30.0
_NO_KIND: Final = (f'resource type "{names.PLURAL}', f'no matches for kind "{KIND}"')


class KubectlError(Exception):
    """What kubectl refused. `reason`: the API server's word (NotFound, Forbidden, …), or empty."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)

    @property
    def is_transient(self) -> bool:
        """Whether the same question may be answered later: the API server was not reached, or is busy."""
        return self.reason in ("", "InternalError", "ServiceUnavailable", "Timeout", "TooManyRequests")


@dataclass(frozen=True)
class Kubectl:
    """kubectl with the flags that say which cluster and namespace are meant. Calls raise KubectlError."""

    program: str
    flags: Sequence[str] = ()

    def get(self, kind: str, name: str) -> Json:
        """One object."""
        return self._json("get", kind, name)

    def find(self, kind: str, name: str) -> Json | None:
        """One object; None where it is not there."""
        found = self._text("get", kind, name, "-o", "json", "--ignore-not-found")
        return dict(json.loads(found)) if found.strip() else None

    def sinks(self, *, everywhere: bool, selector: str | None) -> list[Json]:
        """All S3Sinks of the namespace, or of the cluster."""
        words = [*(["--all-namespaces"] if everywhere else []), *(["--selector", selector] if selector else [])]
        return list(self._json("get", RESOURCE, *words)["items"])

    def annotate(self, sink: str, annotations: Mapping[str, str | None]) -> Json:
        """Sets annotations of a sink, None takes one away; returns the sink as it is then."""
        patch = json.dumps({"metadata": {"annotations": dict(annotations)}})
        return self._json("patch", RESOURCE, sink, "--type=merge", "-p", patch, f"--field-manager={FIELD_MANAGER}")

    def show(self, *words: str) -> int:
        """Runs kubectl with our own output and input; returns its exit code."""
        try:
            return subprocess.call([self.program, *self.flags, *words])
        except KeyboardInterrupt:
            return 130

    def namespace(self) -> str:
        """The namespace that is meant where no flag says so."""
        said = self._text("config", "view", "--minify", "-o", "jsonpath={..namespace}").strip()
        return said or "default"

    def _json(self, *words: str) -> Json:
        return dict(json.loads(self._text(*words, "-o", "json")))

    def _text(self, *words: str) -> str:
        command = [self.program, *self.flags, *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_KUBECTL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise KubectlError(
                "Timeout", f"kubectl {words[0]} has not answered within {_KUBECTL_TIMEOUT_S:g} s"
            ) from None
        if done.returncode:
            raise parse_error(done.stderr)
        return done.stdout


def parse_error(said: str) -> KubectlError:
    """What kubectl wrote to its standard error, as an error that says what to do where we know it."""
    lines = [line for line in said.splitlines() if not _LOG_LINE.match(line)]
    text = "\n".join(lines).strip().removeprefix("error: ")
    if any(words in text for words in _NO_KIND):
        todo = "install the chart s3sink-operator, or apply its CustomResourceDefinition (crds/s3sinks.s3sink.io.yaml)"
        return KubectlError("NoKind", f"this cluster knows no S3Sinks: {todo}")
    found = _FROM_SERVER.search(text)
    if found is None:
        return KubectlError("", text or "kubectl failed and did not say why")
    reason, message = found["reason"], " ".join(found["message"].split())
    lacks = _VERB.search(message)
    if reason == "Forbidden" and lacks is not None:
        hint = f'you need the verb "{lacks["verb"]}" on {_named(lacks["resource"])}'
        return KubectlError(reason, f"{message}: {hint}")
    return KubectlError(reason, message)


def _named(resource: str) -> str:
    """A resource with its group, and where the right to it comes from."""
    if resource == names.PLURAL:
        return f"{RESOURCE} (with rbac.aggregate the chart adds it to the roles view and edit)"
    return resource
