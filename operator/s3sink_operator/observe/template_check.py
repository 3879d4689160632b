"""Asks the API server whether the pod templates of a sink are valid, before a pod depends on them.

Neither the CustomResourceDefinition nor Spark validates a pod template: both drop a field with a misspelled name. A dry
run with strict field validation reports it, and an invalid template never replaces a running driver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from s3sink_operator import names, objects
from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.objects.template_probes import TemplateProbe, template_probes
from s3sink_operator.types import Json, Settings, annotation, owner_reference, uid_of
from sink_job.api.spec import Sink

_NOT_A_POD: Final = ("strict decoding error", "cannot be handled as a Pod", "unable to decode")
_GENERATED_NAME: Final = re.compile(r'^Pod "[^"]*" is invalid: ')


@dataclass
class TemplateChecker:
    """Checks the pod templates of each generation of a sink once."""

    api: KubeApi
    settings: Settings
    _checked: dict[tuple[str, str], tuple[tuple[str, object], str]] = field(default_factory=dict)

    async def error(self, document: Json, sink: Sink, driver: Json | None) -> str:
        """What the API server reports about the pod templates of `sink`; empty if they are valid.

        The templates of a driver with the current settings were checked before it was created. Raises ApiError for
        transient errors, OSError or TimeoutError without an answer.
        """
        if sink.spec.driver.pod_template is None and sink.spec.executor.pod_template is None:
            return ""
        key, version = (sink.namespace, sink.name), (uid_of(document), document["metadata"].get("generation"))
        known = self._checked.get(key)
        if known is not None and known[0] == version:
            return known[1]
        found = "" if self._is_current(sink, driver) else await self._check(self._probes(document, sink))
        self._checked[key] = version, found
        return found

    def forget(self, namespace: str, name: str) -> None:
        """Removes the result of a deleted sink."""
        self._checked.pop((namespace, name), None)

    def _probes(self, document: Json, sink: Sink) -> list[TemplateProbe]:
        return template_probes(sink, owner_reference(document), self.settings)

    def _is_current(self, sink: Sink, driver: Json | None) -> bool:
        spec_hash = None if driver is None else annotation(driver, names.SPEC_HASH_ANNOTATION)
        return spec_hash is not None and spec_hash == objects.spec_hash(sink, self.settings)

    async def _check(self, probes: list[TemplateProbe]) -> str:
        errors: dict[str, str] = {}
        for probe in probes:
            if probe.field in errors:
                continue
            try:
                await self.api.create(probe.pod, dry_run=True, strict=probe.strict)
            except ApiError as error:
                if (message := _template_error(error, strict=probe.strict)) is not None:
                    errors[probe.field] = f"{probe.field}: {message}"
        return "; ".join(errors.values())


def _template_error(error: ApiError, *, strict: bool) -> str | None:
    """The message about the template; None for an error with another cause, such as quota or admission: the creation of
    the pod reports that one. Raises a transient error, unless a webhook caused it."""
    if error.is_transient and "webhook" not in error.message:
        raise error
    message = " ".join(error.message.split())
    if any(words in message for words in _NOT_A_POD):
        return f"the API server rejects it: {message}"
    if not strict and error.status == 422:
        return f"the API server rejects its pod: {_GENERATED_NAME.sub('', message)}"
    return None
