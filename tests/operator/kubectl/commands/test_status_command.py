"""`kubectl s3sink status`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from s3sink_operator.kubectl.client import KubectlError
from tests.operator.fake_cluster import Cluster, report, running
from tests.operator.kubectl.commands.command_line import run
from tests.operator.kubectl.fake_kubectl import FakeKubectl, fake


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return running()


@pytest.fixture
def kubectl(cluster: Cluster) -> FakeKubectl:
    return fake(cluster)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["flights", "-A"], "NAME cannot be combined with -A or -l"),
        (["flights", "-l", "team=a"], "NAME cannot be combined with -A or -l"),
        (["--all-partitions"], "--all-partitions requires NAME"),
    ],
)
def test_arguments_that_exclude_each_other_end_with_2(
    kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert run(kubectl, "status", *words) == 2
    assert capsys.readouterr().err == f"kubectl s3sink: {message}\n"


def test_without_a_name_each_sink_is_one_line(kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(kubectl, "status", "-A") == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["NAMESPACE", "NAME"]
    assert line.split()[:2] == ["data", "flights"]


def test_all_sinks_as_json(kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(kubectl, "status", "-o", "json") == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["name"] == "flights"


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["-l", "a=b"], " in namespace default"),
        (["-l", "a=b", "-n", "data"], " in namespace data"),
    ],
)
def test_without_a_sink_the_namespace_is_named_on_standard_error(
    kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str], words: list[str], where: str
) -> None:
    assert run(kubectl, "status", *words) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"No S3Sinks found{where}.\n")


def test_no_sinks_as_json_are_an_empty_list(kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(kubectl, "status", "-l", "a=b", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"items": []}


def test_one_sink_is_shown_in_detail(kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(kubectl, "status", "flights") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("data/flights: Running\n")
    assert kubectl.calls == []


def test_a_sink_that_does_not_exist_is_the_error_of_kubectl(kubectl: FakeKubectl) -> None:
    with pytest.raises(KubectlError, match="not found"):
        run(kubectl, "status", "trains")


def test_all_partitions_are_those_of_the_report(kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str]) -> None:
    answered = replace(kubectl, report=report(lag=4).model_dump_json(by_alias=True))
    assert run(answered, "status", "flights", "--all-partitions", "-o", "json") == 0
    shown = capsys.readouterr()
    listed = json.loads(shown.out)["allPartitions"]
    assert listed["source"] == "Driver"
    assert [(each["topic"], each["lag"]) for each in listed["items"]] == [("flights", 4)]
    assert shown.err == ""


@pytest.mark.parametrize("output", ["table", "json"])
def test_why_the_report_is_not_used_is_noted_on_standard_error(
    kubectl: FakeKubectl, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    rejected = replace(kubectl, report=KubectlError("Forbidden", "no pods/proxy"))
    assert run(rejected, "status", "flights", "--all-partitions", "-o", output) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("the driver's report cannot be read: no pods/proxy; ")
    if output == "json":
        assert json.loads(shown.out)["allPartitions"]["source"] == "Status"
    else:
        assert "flights   0           100" in shown.out
