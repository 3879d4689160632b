"""`python -m s3sink_operator.crd`, and the file in the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from s3sink_operator import crd
from s3sink_operator.crd import __main__ as command
from tests.operator.crd.definition import FILE, MADE

ANNOTATION_LIMIT = 256 * 1024
"""Bytes of all annotations of an object; client-side `kubectl apply` keeps a copy of the definition in one."""


def test_the_file_is_what_the_models_make() -> None:
    assert FILE.read_text(encoding="utf-8") == crd.text()


def test_the_text_means_the_definition() -> None:
    assert yaml.safe_load(crd.text()) == MADE


def test_a_copy_of_the_definition_leaves_two_fifths_of_the_space_for_annotations() -> None:
    assert len(json.dumps(crd.crd(), separators=(",", ":"))) < ANNOTATION_LIMIT * 3 / 5


def test_a_drifted_file_is_reported_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drifted = tmp_path / "crd.yaml"
    drifted.write_text(crd.text().replace("topicsDir", "topicDir"), encoding="utf-8")
    assert command.main(["--check", str(drifted)]) == 1
    assert capsys.readouterr().err == f"{drifted} differs from the models in sink_job.api: run `make crd`\n"


def test_a_file_that_has_not_drifted_is_fine() -> None:
    assert command.main(["--check", str(FILE)]) == 0


def test_the_command_prints_the_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    assert capsys.readouterr().out == crd.text()
