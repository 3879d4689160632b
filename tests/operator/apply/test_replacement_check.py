"""The dry runs before a running driver is deleted for a larger one."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from s3sink_operator.apply.replacement_check import check_replacement, is_of_webhook
from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.types import Json, Replacement
from sink_job.api.units.quantities import MI

QUOTA = ApiError(403, "Forbidden", "pods is forbidden: exceeded quota: small, requested: limits.memory=2Gi")
DENIED = ApiError(403, "Forbidden", 'admission webhook "w" denied the request: no')
EXISTS = ApiError(409, "AlreadyExists", "pods exists")
BUSY = ApiError(503, "ServiceUnavailable", "later")
FAILED_WEBHOOK = ApiError(500, "InternalError", 'failed calling webhook "w"')


def pod() -> Json:
    """A driver with a sidecar, and resources of the pod."""
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    return {
        "kind": "Pod",
        "metadata": {"name": "flights-s3sink-driver", "namespace": "data", "labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "s3sink", "image": "job:1", "resources": resources}, {"name": "sidecar"}],
            "initContainers": [{"name": "init"}],
            "overhead": {"memory": "1Gi"},
            "resources": {"limits": {"memory": "3Gi"}},
            "nodeSelector": {"disk": "ssd"},
        },
    }


class Api:
    """Answers the dry runs with these errors in turn; None accepts the pod."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.pods: list[Json] = []

    async def create(self, manifest: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        assert dry_run
        assert strict
        self.pods.append(manifest)
        error = self.answers.pop(0)
        if error is not None:
            raise error
        return manifest


def check(*answers: Exception | None, growth: int = 512 * MI) -> list[Json]:
    """The pods of the dry runs. Raises the error of the check."""
    api = Api(*answers)
    asyncio.run(check_replacement(cast("KubeApi", api), Replacement(pod=pod(), growth=growth)))
    assert not api.answers
    return api.pods


@pytest.mark.parametrize("answer", [None, EXISTS], ids=["accepted", "the name exists"])
def test_a_pod_that_the_api_server_accepts_needs_one_dry_run(answer: ApiError | None) -> None:
    """The name of the running pod is checked last: the conflict shows that all else was accepted."""
    assert check(answer) == [pod()]


@pytest.mark.parametrize("error", [DENIED, BUSY, OSError("no route"), TimeoutError()], ids=str)
def test_an_error_other_than_a_quota_is_raised_without_a_second_dry_run(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        check(error)
    assert raised.value is error


@pytest.mark.parametrize("answer", [None, EXISTS], ids=["accepted", "the name exists"])
def test_a_quota_with_room_for_the_additional_memory_accepts_the_pod_in_the_place_of_the_running_one(
    answer: ApiError | None,
) -> None:
    _, additional = check(QUOTA, answer)
    expected = {"cpu": "0", "ephemeral-storage": "0", "memory": "512Mi"}
    (container,) = additional["spec"]["containers"]
    assert container == {"name": "s3sink", "image": "job:1", "resources": {"requests": expected, "limits": expected}}
    assert additional["spec"].keys() == {"containers", "nodeSelector"}
    assert additional["metadata"] == pod()["metadata"]


@pytest.mark.parametrize("growth", [0, -512 * MI])
def test_a_pod_that_needs_no_more_memory_than_the_running_one_fits_into_each_quota(growth: int) -> None:
    assert len(check(QUOTA, growth=growth)) == 1


@pytest.mark.parametrize("second", [QUOTA, DENIED, FAILED_WEBHOOK], ids=["quota", "policy", "webhook"])
def test_the_first_quota_is_raised_if_the_additional_memory_is_rejected_too(second: ApiError) -> None:
    with pytest.raises(ApiError) as raised:
        check(QUOTA, second)
    assert raised.value is QUOTA


@pytest.mark.parametrize("second", [BUSY, ApiError(429, "TooManyRequests", "slow down")], ids=str)
def test_a_busy_api_server_decides_nothing(second: ApiError) -> None:
    with pytest.raises(ApiError) as raised:
        check(QUOTA, second)
    assert raised.value is second


def test_a_webhook_that_does_not_answer_is_no_busy_api_server() -> None:
    assert FAILED_WEBHOOK.is_transient
    assert [is_of_webhook(error) for error in (FAILED_WEBHOOK, DENIED, BUSY, QUOTA)] == [True, True, False, False]
