"""The sink's Java classes in a real JVM: compiled once, loaded from the cache afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from py4j.java_gateway import JavaGateway

from sink_job.kafka import java_classes
from sink_job.kafka.java_classes import class_jar, new_instance
from sink_job.kafka.jvm import plain_jvm

pytestmark = pytest.mark.data

NAME = "s3sink.tests.Greeting"
GREETING = "package s3sink.tests; public class Greeting { public String text() { return new Other().text(); } }"
OTHER = 'package s3sink.tests; class Other { String text() { return "hello"; } }'


@pytest.fixture
def jvms() -> Iterator[list[JavaGateway]]:
    """Two JVMs: py4j keeps the methods of a class by its name."""
    gateways = [plain_jvm([]), plain_jvm([])]
    yield gateways
    for gateway in gateways:
        gateway.shutdown()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("S3SINK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    for name, text in (("Greeting", GREETING), ("Other", OTHER)):
        (tmp_path / f"{name}.java").write_text(text)
    return [tmp_path / "Greeting.java", tmp_path / "Other.java"]


def greeting(jvm: JavaGateway, sources: list[Path]) -> str:
    return str(new_instance(jvm, sources[0], NAME, sources[1]).text())


def test_a_class_is_compiled_once_per_machine(
    jvms: list[JavaGateway], cache: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert greeting(jvms[0], sources) == "hello"
    [jar] = (cache / "jvm").iterdir()
    monkeypatch.delattr(java_classes, "_compile")
    assert greeting(jvms[1], sources) == "hello"
    assert class_jar(jvms[1], sources[0], NAME, sources[1], folder=cache) == jar
    assert ZipFile(jar).namelist() == ["s3sink/tests/Greeting.class", "s3sink/tests/Other.class"]


def test_without_a_cache_classes_are_compiled_at_each_start(
    jvms: list[JavaGateway], cache: Path, sources: list[Path], tmp_path: Path
) -> None:
    cache.touch()  # not a directory
    assert greeting(jvms[0], sources) == "hello"
    jar = class_jar(jvms[0], sources[0], NAME, sources[1], folder=tmp_path)
    assert jar.parent == tmp_path
    assert len(ZipFile(jar).namelist()) == 2
