"""The customization in Argo CD's own code, which reads argocd-cm.yaml as its settings."""

from __future__ import annotations

import pytest

from tests.argocd.test_customization import ACTION, ACTIONS, FOLDER, HEALTH, load
from tests.support.argocd import ArgoCd

pytestmark = pytest.mark.cluster
OF_ARGO_CD = {"status": "Progressing", "message": "Pending deletion"}


def test_argo_cd_finds_the_health_that_the_tests_expect(argocd: ArgoCd) -> None:
    answers = argocd.answers([{"object": load(FOLDER / case["inputPath"])} for case in HEALTH])
    found = {case["inputPath"]: answer["health"] for case, answer in zip(HEALTH, answers, strict=True)}
    # Argo CD asks no script about an object that is being deleted.
    expected = {case["inputPath"]: case["healthStatus"] for case in HEALTH} | {"testdata/terminating.yaml": OF_ARGO_CD}
    assert found == expected


def test_argo_cd_offers_the_actions_that_the_tests_expect(argocd: ArgoCd) -> None:
    for case in ACTION["discoveryTests"]:
        expected = {each["name"]: each["disabled"] for each in case["result"]}
        assert argocd.actions(load(ACTIONS / case["inputPath"])) == expected, case["inputPath"]


def test_argo_cd_executes_each_action_as_the_tests_expect(argocd: ArgoCd) -> None:
    for case in ACTION["actionTests"]:
        made = argocd.act(load(ACTIONS / case["inputPath"]), case["action"])
        expected = load(ACTIONS / case["expectedOutputPath"])
        if case["action"] == "restart":  # its annotation is the time, which the expected file cannot know
            annotation = "s3sink.io/restart"
            assert made["metadata"]["annotations"].pop(annotation)
            del expected["metadata"]["annotations"][annotation]
        assert made == expected, case["inputPath"]
