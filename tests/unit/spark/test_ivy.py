"""The download of jars by Spark's Ivy."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from sink_job.spark import ivy


def test_the_directory_of_jars_may_have_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark parses the name of the settings file as a URI."""
    gateway = MagicMock()
    monkeypatch.setattr("sink_job.spark.pyspark_core.launch_gateway", lambda **options: gateway)
    folder = tmp_path / "my jars"
    folder.mkdir()
    ivy.fetch([], folder)
    (uri, *_) = gateway.jvm.org.apache.spark.util.MavenUtils.loadIvySettings.call_args.args
    assert " " not in uri
    assert Path(url2pathname(urlsplit(uri).path)).is_relative_to(folder)
