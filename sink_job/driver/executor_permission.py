"""Checks whether the API server lets the driver create executor pods.

Spark only logs a denied creation, and a sink whose executors still run would not notice. Every account may ask the API
server about its own permissions (SelfSubjectAccessReview), so this requires no permission.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

INTERVAL_S: Final = 30.0
_TIMEOUT_S: Final = 10.0
_MAX_REASON: Final = 500
_MAX_ANSWER: Final = 1 << 20
_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

_log = logging.getLogger(__name__)


class ExecutorPermission:
    """Asks every `interval_s` seconds while the context is active. `properties` are those of Spark."""

    def __init__(self, properties: Mapping[str, str], *, interval_s: float = INTERVAL_S) -> None:
        self._properties = properties
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="s3sink-executor-permission", daemon=True)
        self.denial: str | None = None
        """Why the driver may not create executors; None if it may, or if the API server did not answer yet."""

    def __enter__(self) -> ExecutorPermission:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                found = creation_denial(self._properties)
            except (OSError, ValueError, KeyError) as error:
                _log.debug("the API server did not answer whether executors may be created: %s", error)
            else:
                if found is not None and found != self.denial:
                    _log.error("%s", found)
                self.denial = found
            self._stop.wait(self._interval_s)


def creation_denial(properties: Mapping[str, str]) -> str | None:
    """Why the account of Spark may not create pods in its namespace; None if it may.

    Raises OSError if the API server does not answer, ValueError or KeyError for an invalid answer.
    """
    namespace = properties["spark.kubernetes.namespace"]
    attributes = {"namespace": namespace, "verb": "create", "resource": "pods"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    status = _post(properties, _PATH, review)["status"]
    if status["allowed"]:
        return None
    reason = " ".join(str(status.get("reason") or status.get("evaluationError") or "no role allows it").split())
    return f"the API server denies the driver to create pods in namespace {namespace}: {reason[:_MAX_REASON]}"


def _post(properties: Mapping[str, str], path: str, body: object) -> dict[str, dict[str, object]]:
    prefix = "spark.kubernetes.authenticate"
    token = Path(properties[f"{prefix}.oauthTokenFile"]).read_text().strip()  # the kubelet renews it
    server = properties["spark.master"].removeprefix("k8s://")
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if server.startswith("https:"):
        context = ssl.create_default_context(cafile=properties[f"{prefix}.caCertFile"])
        handlers.append(urllib.request.HTTPSHandler(context=context))
    request = urllib.request.Request(
        server + path,
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_S) as answer:
        found: dict[str, dict[str, object]] = json.loads(answer.read(_MAX_ANSWER))
        return found
