"""`kubectl s3sink explain`."""

from __future__ import annotations

import json

import pytest

from tests.operator.fake_cluster import Cluster, document, running
from tests.operator.kubectl.commands.command_line import run
from tests.operator.kubectl.fake_kubectl import fake


def test_the_settings_are_a_table_with_their_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fake(running()), "explain", "flights") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["FIELD", "VALUE", "SOURCE"]
    assert ["spec.s3.bucket", "archive", "spec"] in lines


def test_the_settings_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fake(running()), "explain", "flights", "-o", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert "spec.s3.bucket" in json.dumps(data)


@pytest.mark.parametrize("output", ["table", "json"])
def test_an_invalid_spec_is_an_error_with_its_field_and_nothing_is_printed(
    capsys: pytest.CaptureFixture[str], output: str
) -> None:
    cluster = Cluster(sink=document(rotation={"flushSize": 0}))
    assert run(fake(cluster), "explain", "flights", "-o", output) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("kubectl s3sink: flights: the spec is invalid: ")
    assert "spec.rotation.flushSize" in shown.err
