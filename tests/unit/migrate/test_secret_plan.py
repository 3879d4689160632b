"""Secrets: references to existing ones, and commands for the others."""

from __future__ import annotations

import pytest

from sink_job.migrate.secret_plan import SecretPlan, SecretReference


def test_a_reference_of_strimzi_is_the_existing_secret() -> None:
    plan = SecretPlan("flights", "kafka")
    assert plan.existing("${secrets:kafka/login:password}") == SecretReference("login", "password")
    assert plan.existing(" ${secrets:login:password} ") == SecretReference("login", "password")
    assert list(plan.steps()) == []


@pytest.mark.parametrize(
    "value", ["hunter2", "${env:X}", "${secrets:kafka/Not_A_Name:key}", "${secrets:kafka/a:../x}", ""]
)
def test_other_values_refer_to_no_secret(value: str) -> None:
    assert SecretPlan("flights", "kafka").existing(value) is None


def test_a_secret_of_another_namespace_has_to_be_copied() -> None:
    plan = SecretPlan("flights", "kafka")
    plan.existing("${secrets:other/login:password}")
    assert [step.split(":")[0] for step in plan.steps()] == ["Copy the Secret login from the namespace other"]


def test_the_command_has_the_keys_and_no_values() -> None:
    plan = SecretPlan("flights", "kafka")
    assert plan.create("s3", {"ID": "the value of a"}) == "flights-s3"
    plan.create("s3", {"KEY": "the value of b"})
    assert list(plan.steps()) == [
        "Write into the file ID: the value of a",
        "Write into the file KEY: the value of b",
        "kubectl create secret generic flights-s3 --namespace kafka --from-file=ID --from-file=KEY",
        "Without a cluster: s3sink run MANIFEST --secret flights-s3=DIR, the directory of these files",
    ]
