"""Asks the API server whether it accepts the pod that is to replace a running one, before that is deleted.

A dry run beside the running pod answers this for admission policies, webhooks, limit ranges and Pod Security. It does
not for quotas: they count the running pod, too, and may reject a pod that fits into its place. So a second dry run asks
for a pod with the additional memory alone, which every quota counts exactly; the other resources do not change. A quota
on the number of pods that is used up rejects that one, too: then nothing is known about the other quotas, and the
running pod is kept.

The message of the first dry run has the figures of one quota, and the next one may have no room. To delete the pod, and
to create one of the previous size if the larger one is rejected, would stop the sink each time, and another pod may
take the place meanwhile.
"""

from __future__ import annotations

from typing import Final

from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.objects import CONTAINER
from s3sink_operator.types import Json, Replacement
from sink_job.api.units.quantities import format_size

_NO_RESOURCES: Final = {"cpu": "0", "ephemeral-storage": "0"}


async def check_replacement(api: KubeApi, replacement: Replacement) -> None:
    """Raises the ApiError of the first dry run if the pod would be rejected, and OSError or TimeoutError without an
    answer."""
    try:
        await _dry_run(api, replacement.pod)
    except ApiError as error:
        if "exceeded quota" not in error.message or not await _fits(api, replacement):
            raise


async def _fits(api: KubeApi, replacement: Replacement) -> bool:
    """Whether the quotas have room for the additional memory."""
    if replacement.growth <= 0:
        return True
    try:
        await _dry_run(api, _additional(replacement))
    except ApiError as error:
        if error.is_transient and not is_of_webhook(error):
            raise
        return False
    return True


async def _dry_run(api: KubeApi, pod: Json) -> None:
    """Raises ApiError if the API server rejects the pod. It checks last whether the name exists."""
    try:
        await api.create(pod, dry_run=True, strict=True)
    except ApiError as error:
        if not error.is_conflict:
            raise


def _additional(replacement: Replacement) -> Json:
    """A pod like the replacement, with only its additional memory and without sidecars."""
    spec = replacement.pod["spec"]
    resources = _NO_RESOURCES | {"memory": format_size(replacement.growth)}
    own = [
        each | {"resources": {"requests": resources, "limits": resources}}
        for each in spec["containers"]
        if each["name"] == CONTAINER
    ]
    without = {name: value for name, value in spec.items() if name not in ("initContainers", "overhead", "resources")}
    return replacement.pod | {"spec": without | {"containers": own}}


def is_of_webhook(error: ApiError) -> bool:
    """Whether a webhook that does not answer is the cause, which may last."""
    return "webhook" in error.message
