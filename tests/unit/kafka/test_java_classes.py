"""Where compiled classes are kept. Tests with a JVM are in tests/data."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.kafka import java_classes


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("S3SINK_CACHE", str(tmp_path))
    source = tmp_path / "A.java"
    source.write_text("class A {}")
    return source


def test_classes_are_kept_in_the_cache(source: Path) -> None:
    jar = java_classes._jar_path("s3sink.A", [source])
    assert jar.parent == source.parent / "jvm"
    assert jar.name.startswith("s3sink.A-")


def test_another_source_has_another_jar(source: Path, tmp_path: Path) -> None:
    jar = java_classes._jar_path("s3sink.A", [source])
    assert java_classes._jar_path("s3sink.A", [source]) == jar
    source.write_text("class A { int field; }")
    changed = java_classes._jar_path("s3sink.A", [source])
    (tmp_path / "B.java").write_text("class B {}")
    with_other = java_classes._jar_path("s3sink.A", [source, tmp_path / "B.java"])
    assert len({jar, changed, with_other}) == 3


def test_another_spark_has_another_jar(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = java_classes._jar_path("s3sink.A", [source])
    monkeypatch.setattr(java_classes, "version", lambda package: "9.9.9")
    assert java_classes._jar_path("s3sink.A", [source]) != jar
