"""A thin client of an API server for tests: plain JSON in and out, every call one request, errors with all they say.

It shares nothing with what the operator calls the API server by, so a mistake there cannot hide here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from devtools.certificates import Certificate
from devtools.processes import ServerFailedError, wait_until

Json = dict[str, Any]

FIELD_MANAGER = "tests"
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(Exception):
    """The API server's rejection: HTTP status, its machine-readable reason, its message, and its whole Status."""

    def __init__(self, call: str, status: int, answer: Json) -> None:
        self.status = status
        self.reason = str(answer.get("reason", ""))
        self.message = str(answer.get("message", ""))
        self.answer = answer
        super().__init__(f"{call}: {status} {self.reason}: {self.message}")


@dataclass(frozen=True)
class Access:
    """Address and credentials of an API server: a bearer token, a client certificate, or none."""

    server: str
    authority: Path | None = None
    token: str | None = None
    certificate: Certificate | None = None

    def through(self, server: str) -> Access:
        """The same by another way to the server (a proxy's); tokens go that way, client certificates do not."""
        return Access(server, None if server.startswith("http:") else self.authority, self.token)


@dataclass(frozen=True)
class _Resource:
    group_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str | None, subresource: str | None) -> str:
        words = ["/apis" if "/" in self.group_version else "/api", self.group_version]
        if self.namespaced and namespace:
            words += ["namespaces", quote(namespace)]
        return "/".join([*words, self.plural, *(quote(word) for word in (name, subresource) if word)])


_KNOWN = {
    "Pod": _Resource("v1", "pods", True),
    "Node": _Resource("v1", "nodes", False),
    "Namespace": _Resource("v1", "namespaces", False),
    "ConfigMap": _Resource("v1", "configmaps", True),
    "Secret": _Resource("v1", "secrets", True),
    "ServiceAccount": _Resource("v1", "serviceaccounts", True),
    "Event": _Resource("v1", "events", True),
    "CustomResourceDefinition": _Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", False),
}


@dataclass
class Kube:
    """Calls to one API server. `namespace` is where namespaced objects are meant without a word on it.

    A kind is given by its name (`Pod`, `S3Sink`); other kinds are looked up on the server once.
    Every call raises `ApiError` when the server rejects. Threads may share it.
    """

    access: Access
    namespace: str | None = None
    _resources: dict[str, _Resource] = field(default_factory=lambda: dict(_KNOWN), repr=False)
    _http: urllib3.PoolManager = field(init=False, repr=False)

    def __post_init__(self) -> None:
        options: dict[str, Any] = {"maxsize": 8, "retries": False, "timeout": 60}
        if self.access.authority:
            options["ca_certs"] = str(self.access.authority)
        if self.access.certificate:
            options["cert_file"] = str(self.access.certificate.certificate)
            options["key_file"] = str(self.access.certificate.key)
        self._http = urllib3.PoolManager(**options)

    def within(self, namespace: str) -> Kube:
        """The same server with another namespace."""
        return Kube(self.access, namespace, self._resources)

    def get(self, kind: str, name: str, *, subresource: str | None = None) -> Json:
        return self.request("GET", self._path(kind, name, subresource))

    def find(self, kind: str, name: str) -> Json | None:
        """As `get`; None where there is no such object."""
        try:
            return self.get(kind, name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, kind: str, *, labels: str | None = None, everywhere: bool = False) -> list[Json]:
        """Objects of a kind (without `kind` and `apiVersion` of their own, as lists are), by label selector."""
        path = self._path(kind, None, None, everywhere=everywhere)
        items: list[Json] = self.request("GET", path, query={"labelSelector": labels})["items"]
        return items

    def create(self, manifest: Json, *, dry_run: bool = False) -> Json:
        query = {"dryRun": "All" if dry_run else None}
        return self.request("POST", self._path_of(manifest, named=False), manifest, query=query)

    def replace(self, manifest: Json) -> Json:
        """PUT: with its resourceVersion where another's change in between is to be rejected."""
        return self.request("PUT", self._path_of(manifest), manifest)

    def apply(self, manifest: Json, *, manager: str = FIELD_MANAGER, force: bool = True) -> Json:
        """Server-side apply."""
        query = {"fieldManager": manager, "force": "true" if force else None}
        return self.request("PATCH", self._path_of(manifest), manifest, query=query, content_type=_APPLY_PATCH)

    def patch(self, kind: str, name: str, patch: Json, *, subresource: str | None = None) -> Json:
        """A JSON merge patch: null removes, lists are replaced whole."""
        path = self._path(kind, name, subresource)
        return self.request("PATCH", path, patch, content_type=_MERGE_PATCH)

    def post(self, kind: str, name: str, subresource: str, body: Json) -> Json:
        """Creates a subresource, such as a pod's `binding` or a service account's `token`."""
        return self.request("POST", self._path(kind, name, subresource), body)

    def delete(
        self, kind: str, name: str, *, grace_s: int | None = None, uid: str | None = None, policy: str | None = None
    ) -> Json:
        """Deletes; `policy` is Background, Foreground or Orphan, `uid` a precondition, `grace_s` 0 is by force."""
        options = {
            "gracePeriodSeconds": grace_s,
            "propagationPolicy": policy,
            "preconditions": {"uid": uid} if uid else None,
        }
        body = {key: value for key, value in options.items() if value is not None}
        return self.request("DELETE", self._path(kind, name, None), body)

    def wait(
        self, kind: str, name: str, is_so: Callable[[Json], object], *, seconds: float = 60, what: str = ""
    ) -> Json:
        """The object as soon as it is there and `is_so`; `ServerFailedError` when not in time."""
        seen: Json = {}

        def holds() -> bool:
            seen.clear()
            seen.update(self.find(kind, name) or {})
            return bool(seen) and bool(is_so(seen))

        wait_until(holds, what or f"{kind} {name}", seconds=seconds)
        return dict(seen)

    def wait_gone(self, kind: str, name: str, *, uid: str | None = None, seconds: float = 60) -> None:
        """Returns when there is no such object any more (or, with `uid`, not that one).

        Raises `ServerFailedError` after `seconds`, with the finalizers and conditions that the object still has.
        """
        left: Json = {}

        def gone() -> bool:
            left.clear()
            left.update(self.find(kind, name) or {})
            return not left or (uid is not None and left["metadata"]["uid"] != uid)

        try:
            wait_until(gone, f"{kind} {name} gone", seconds=seconds)
        except ServerFailedError as error:
            finalizers = left.get("metadata", {}).get("finalizers", [])
            conditions = left.get("status", {}).get("conditions", [])
            raise ServerFailedError(f"{error}; finalizers {finalizers}, conditions {conditions}") from error

    def watch(
        self, kind: str, *, resource_version: str, stop: threading.Event | None = None, timeout_s: int = 5
    ) -> Iterator[Json]:
        """Events (`type`, `object`) after `resource_version`, until the server's `timeout_s` are over or `stop`."""
        query = {"watch": "1", "resourceVersion": resource_version, "timeoutSeconds": str(timeout_s)}
        address = self._address(self._path(kind, None, None), query)
        answer = self._http.request("GET", address, headers=self._headers(None), preload_content=False)
        try:
            left = b""
            for chunk in answer.stream(1 << 16):
                *lines, left = (left + chunk).split(b"\n")
                for line in lines:
                    if stop and stop.is_set():
                        return
                    yield json.loads(line)
        finally:
            answer.close()

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, str | None] | None = None,
        content_type: str = _JSON,
    ) -> Json:
        """Any call, with `path` below the server's address."""
        data = None if body is None else json.dumps(body).encode()
        address = self._address(path, query or {})
        answer = self._http.request(method, address, body=data, headers=self._headers(content_type))
        text = answer.data
        is_json = (answer.headers.get("content-type") or "").startswith(_JSON)
        content: Json = json.loads(text) if is_json else {"message": text.decode(errors="replace")}
        if answer.status >= 400:
            raise ApiError(f"{method} {path}", answer.status, content)
        return content

    def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = {"Accept": _JSON}
        if content_type:
            headers["Content-Type"] = content_type
        if self.access.token:
            headers["Authorization"] = f"Bearer {self.access.token}"
        return headers

    def _address(self, path: str, query: Mapping[str, str | None]) -> str:
        given = {key: value for key, value in query.items() if value is not None}
        return self.access.server + path + (f"?{urlencode(given)}" if given else "")

    def _path_of(self, manifest: Json, *, named: bool = True) -> str:
        metadata = manifest["metadata"]
        resource = self._resource(manifest["kind"], manifest["apiVersion"])
        return resource.path(metadata.get("namespace") or self.namespace, metadata["name"] if named else None, None)

    def _path(self, kind: str, name: str | None, subresource: str | None, *, everywhere: bool = False) -> str:
        return self._resource(kind).path(None if everywhere else self.namespace, name, subresource)

    def _resource(self, kind: str, group_version: str | None = None) -> _Resource:
        known = self._resources.get(kind)
        if known and group_version in (None, known.group_version):
            return known
        for candidate in [group_version] if group_version else self._group_versions():
            prefix = "/apis" if "/" in candidate else "/api"
            for each in self.request("GET", f"{prefix}/{candidate}")["resources"]:
                if each["kind"] == kind and "/" not in each["name"]:
                    found = _Resource(candidate, each["name"], each["namespaced"])
                    self._resources.setdefault(kind, found)
                    return found
        raise LookupError(f"the API server has no kind {kind}")

    def _group_versions(self) -> list[str]:
        groups = self.request("GET", "/apis")["groups"]
        return ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
