"""What the API server answers about pod templates, and when the operator asks it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from s3sink_operator import names, objects
from s3sink_operator.apply.applier import DecisionApplier
from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.observe.template_check import TemplateChecker
from s3sink_operator.types import Decision, Json, ObjectWrites
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink
from tests.operator.fake_cluster import SETTINGS, document

STRICT = ApiError(
    400,
    "BadRequest",
    'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.nodeselector"',
)


class Api:
    """Answers each dry run with an error, if one is set for it."""

    def __init__(self, *answers: ApiError | None) -> None:
        self.answers = list(answers)
        self.pods: list[tuple[Json, bool]] = []

    async def create(self, manifest: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        assert dry_run
        self.pods.append((manifest, strict))
        error = self.answers.pop(0) if self.answers else None
        if error is not None:
            raise error
        return manifest


def sink(**template: Any) -> tuple[Json, Sink]:
    """A sink in Cluster mode whose executors have this pod template."""
    found = document(executor={"mode": "Cluster", "podTemplate": template})
    return found, parse_sink(found)


def check(api: Api, *, driver: Json | None = None, times: int = 1, **template: Any) -> str:
    checker = TemplateChecker(cast("KubeApi", api), SETTINGS)
    found, parsed = sink(**template)
    return [asyncio.run(checker.error(found, parsed, driver)) for _ in range(times)][-1]


def test_an_unknown_field_is_reported_in_the_words_of_the_api_server() -> None:
    message = check(Api(STRICT), spec={"nodeselector": {"a": "b"}})
    assert message == f"spec.executor.podTemplate: the API server rejects it: {STRICT.message}"


def test_an_invalid_pod_is_reported_without_its_generated_name() -> None:
    invalid = ApiError(422, "Invalid", 'Pod "flights-s3sink-check-x7k2p" is invalid: spec.tolerations[0].operator: no')
    message = check(Api(None, invalid), spec={"tolerations": [{"operator": "Exist"}]})
    assert message.endswith("podTemplate: the API server rejects its pod: spec.tolerations[0].operator: no")


@pytest.mark.parametrize(
    "error",
    [
        ApiError(403, "Forbidden", "exceeded quota"),
        ApiError(400, "BadRequest", 'admission webhook "a" does not support dry run'),
        ApiError(500, "InternalError", 'failed calling webhook "a"'),
    ],
    ids=["quota", "a webhook without dry runs", "a webhook that fails"],
)
def test_an_error_with_another_cause_is_not_one_of_the_template(error: ApiError) -> None:
    assert check(Api(error, error), spec={}) == ""


def test_a_transient_error_is_raised() -> None:
    with pytest.raises(ApiError):
        check(Api(ApiError(503, "ServiceUnavailable", "later")), spec={})


def test_a_generation_is_checked_once() -> None:
    api = Api()
    check(api, spec={}, times=3)
    assert [strict for _, strict in api.pods] == [True, False]


def test_the_template_of_a_current_driver_is_not_checked_again() -> None:
    api = Api()
    _, parsed = sink(spec={})
    driver = {"metadata": {"annotations": {names.SPEC_HASH_ANNOTATION: objects.spec_hash(parsed, SETTINGS)}}}
    assert check(api, driver=driver, spec={}) == ""
    assert api.pods == []


def test_the_owner_of_a_checked_pod_is_the_sink() -> None:
    api = Api()
    found = document(driver={"podTemplate": {"spec": {}}})
    asyncio.run(TemplateChecker(cast("KubeApi", api), SETTINGS).error(found, parse_sink(found), None))
    (owner,) = api.pods[1][0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("S3Sink", "flights", found["metadata"]["uid"])


def test_a_pod_is_created_with_strict_field_validation() -> None:
    asked: list[bool] = []

    class Creating:
        async def create(self, manifest: Json, *, strict: bool = False) -> Json:
            asked.append(strict)
            return manifest

    applier = DecisionApplier(cast("KubeApi", Creating()), ObjectCache(), lambda: 0)
    pod = {"kind": "Pod", "metadata": {"name": "a", "namespace": "data", "resourceVersion": "1"}}
    owner = document() | {"kind": "S3Sink"}
    owner["metadata"]["resourceVersion"] = "1"
    asyncio.run(applier.apply(SinkKey("data", "flights"), owner, Decision(writes=ObjectWrites(create=(pod,)))))
    assert asked == [True]
