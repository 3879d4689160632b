"""A JSON client of the API server: server-side apply, create, delete with a uid, patches, and one typed error.

Typed models would cost more than the requests themselves with a thousand sinks, and would drop fields of newer servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import aiohttp
from pydantic_core import to_json

from s3sink_operator.kube.kube_session import TIMEOUT_S, KubeSession
from s3sink_operator.metrics import API_WRITES
from s3sink_operator.names import FIELD_MANAGER, PLURAL
from s3sink_operator.nesting import parse_json
from s3sink_operator.types import Json, without_managed_fields
from sink_job.api.redaction import redacted
from sink_job.api.spec import GROUP, VERSION

_PATHS: Mapping[str, tuple[str, str]] = {
    "S3Sink": (f"/apis/{GROUP}/{VERSION}", PLURAL),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Event": ("/api/v1", "events"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "Namespace": ("/api/v1", "namespaces"),
    "Node": ("/api/v1", "nodes"),
    "Pod": ("/api/v1", "pods"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "SelfSubjectAccessReview": ("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
}
MAX_LIST_BYTES: Final = 1 << 20
"""Size limit of a list with a maximum number of objects."""

_CLUSTER_WIDE = {"Namespace", "Node"}
_UNCOUNTED = {"Lease", "SelfSubjectAccessReview"}  # not written for a sink


class ApiError(Exception):
    """An error response: HTTP `status`, `reason`, `message`, and `retry_after_s` from Retry-After if it is set."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        super().__init__(status, reason, message)

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}"

    @property
    def is_not_found(self) -> bool:
        """Whether the object does not exist."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Whether another client was faster: the object exists, has another uid, or was changed."""
        return self.status == 409

    @property
    def is_transient(self) -> bool:
        """Whether a retry may succeed: the server is busy or unavailable."""
        return self.status in (408, 429) or (self.status >= 500 and not self.is_unknown_field)

    @property
    def is_unknown_field(self) -> bool:
        """Whether the CustomResourceDefinition does not declare a written field: an apply returns 500."""
        return "field not declared in schema" in self.message


class KubeApi:
    """The requests of the operator. Each raises ApiError, and OSError or TimeoutError without an answer."""

    def __init__(self, session: KubeSession) -> None:
        self._session = session

    async def get(self, kind: str, namespace: str | None, name: str) -> Json | None:
        """The object; None if it does not exist."""
        try:
            return await self._call("GET", kind, namespace, name)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def list(
        self, kind: str, namespace: str | None, selector: str = "", *, fields: str = "", most: int | None = None
    ) -> list[Json]:
        """The objects that match a label selector and a field selector, at most `most` of them; ResponseTooLarge if
        those take more than MAX_LIST_BYTES."""
        query = {name: each for name, each in (("labelSelector", selector), ("fieldSelector", fields)) if each}
        query |= {} if most is None else {"limit": str(most)}
        limit = None if most is None else MAX_LIST_BYTES
        found = await self._call("GET", kind, namespace, query=query, limit=limit)
        return [{"kind": kind, **item} for item in found.get("items") or ()]

    async def apply(self, manifest: Json, *, subresource: str = "") -> Json:
        """Server-side apply with force, by the operator's field manager."""
        meta = manifest["metadata"]
        return await self._call(
            "PATCH",
            manifest["kind"],
            meta.get("namespace"),
            meta["name"],
            subresource=subresource,
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            body=manifest,
            content="application/apply-patch+yaml",
        )

    async def create(self, manifest: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        """Creates an object; 409 if the name exists. With `dry_run` the API server only checks it; with `strict` it
        rejects unknown and duplicate fields with 400."""
        meta = manifest["metadata"]
        query = {"fieldManager": FIELD_MANAGER}
        query |= ({"dryRun": "All"} if dry_run else {}) | ({"fieldValidation": "Strict"} if strict else {})
        return await self._call("POST", manifest["kind"], meta.get("namespace"), query=query, body=manifest)

    async def replace(self, manifest: Json) -> Json:
        """Replaces an object; 409 if it changed since the `resourceVersion` of the manifest."""
        meta = manifest["metadata"]
        return await self._call("PUT", manifest["kind"], meta.get("namespace"), meta["name"], body=manifest)

    async def resources(self, group_version: str) -> set[str]:
        """The resources of a group version such as `v1`: `pods`, `pods/resize` and so on."""
        path = f"/{'apis' if '/' in group_version else 'api'}/{group_version}"
        return {each["name"] for each in parse_json(await self.raw(path))["resources"]}

    async def is_allowed(self, verb: str, resource: str) -> bool:
        """Whether the operator has a verb on a resource of the core group in all namespaces."""
        attributes = {"verb": verb, "resource": resource}
        body: Json = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "metadata": {},
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._call("POST", "SelfSubjectAccessReview", None, body=body)
        return bool(answer.get("status", {}).get("allowed"))

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str, grace_s: int | None = None) -> None:
        """Deletes the object with this uid; 409 if it has another one."""
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        body["propagationPolicy"] = "Background"
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._call("DELETE", kind, namespace, name, body=body)

    async def merge_patch(self, kind: str, namespace: str, name: str, body: Json, *, subresource: str = "") -> Json:
        """A merge patch."""
        content = "application/merge-patch+json"
        query = {"fieldManager": FIELD_MANAGER}
        return await self._call(
            "PATCH", kind, namespace, name, subresource=subresource, query=query, body=body, content=content
        )

    async def strategic_patch(self, kind: str, namespace: str, name: str, body: Json, *, subresource: str) -> Json:
        """A strategic merge patch, which merges containers by name."""
        content = "application/strategic-merge-patch+json"
        query = {"fieldManager": FIELD_MANAGER}
        return await self._call(
            "PATCH", kind, namespace, name, subresource=subresource, query=query, body=body, content=content
        )

    async def raw(self, path: str, *, limit: int | None = None) -> bytes:
        """The content of a path; OSError if it is longer than `limit` bytes."""
        return await self._send("GET", path, None, "application/json", limit=limit)

    async def _call(
        self,
        method: str,
        kind: str,
        namespace: str | None,
        name: str = "",
        *,
        subresource: str = "",
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content: str = "application/json",
        limit: int | None = None,
    ) -> Json:
        path = path_of(kind, namespace, name, subresource)
        if method != "GET" and kind not in _UNCOUNTED and "dryRun" not in (query or {}):
            API_WRITES.labels(kind=kind if not subresource else f"{kind}/{subresource}", verb=method.lower()).inc()
        answer = await self._send(method, f"{path}?{urlencode(query)}" if query else path, body, content, limit=limit)
        found: Json = parse_json(answer) if answer else {}
        return without_managed_fields(found) if "metadata" in found else found

    async def _send(
        self, method: str, path: str, body: Json | None, content: str, *, limit: int | None = None
    ) -> bytes:
        data = None if body is None else to_json(body)
        try:
            async with await self._session.send(method, path, data, content) as response:
                answer = await (response.read() if limit is None else read_limited(response, limit))
        except aiohttp.ClientError as error:  # not all of them are an OSError
            raise ConnectionError(
                f"{method} {_without_query(path)}: {redacted(str(error) or type(error).__name__)}"
            ) from error
        except TimeoutError:
            raise TimeoutError(f"{method} {_without_query(path)}: no answer within {TIMEOUT_S:g} s") from None
        if response.status >= 300:
            raise _api_error(response.status, answer, response.headers.get("Retry-After"))
        return answer


def _without_query(path: str) -> str:
    """A path for messages. A query may contain the token of a report."""
    return path.partition("?")[0]


class ResponseTooLarge(OSError):
    """A response is longer than its limit."""


async def read_limited(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The content of a response; ResponseTooLarge as soon as it is longer than `limit` bytes."""
    found = bytearray()
    async for chunk in response.content.iter_any():
        found += chunk
        if len(found) > limit:
            response.close()
            raise ResponseTooLarge(f"{response.url.path}: the response is longer than {limit >> 20} MiB")
    return bytes(found)


def path_of(kind: str, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """The path of an object, or of a collection if there is no name."""
    group, plural = _PATHS[kind]
    within = f"/namespaces/{namespace}" if namespace and kind not in _CLUSTER_WIDE else ""
    tail = "".join(f"/{each}" for each in (name, subresource) if each)
    return f"{group}{within}/{plural}{tail}"


def _api_error(status: int, answer: bytes, retry_after: str | None) -> ApiError:
    try:
        body = parse_json(answer)
    except ValueError:
        body = {}
    reason, message = body.get("reason") or "Unknown", body.get("message") or answer[:300].decode(errors="replace")
    wait = float(retry_after) if retry_after and retry_after.isdigit() else None
    return ApiError(status, reason, message, wait)
