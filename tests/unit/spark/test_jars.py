"""The jars of Kafka's client: where they are found, when they are downloaded, and what a wrong file leads to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.spark import ivy, jars
from sink_job.spark.jar_table import Jar
from sink_job.spark.jars import CLIENT, archive_path, cached_jars, client_jars

CONTENT = b"a jar"
JAR = Jar("org.example", "lib", "1.0", hashlib.sha256(CONTENT).hexdigest())
OTHER = Jar("org.example", "other", "2.0", hashlib.sha256(b"another jar").hexdigest())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("S3SINK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "jars" / "libs"


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The contents of the mirror by artifact; those that were fetched are removed."""
    mirror = {"lib": CONTENT, "other": b"another jar"}

    def fetch(missing: Sequence[Jar], folder: Path) -> None:
        for jar in missing:
            if jar.artifact not in mirror:
                raise TransientError("the mirror does not answer")
            (folder / jar.file_name).write_bytes(mirror.pop(jar.artifact))

    monkeypatch.setattr(ivy, "fetch", fetch)
    return mirror


# -- the cache ---------------------------------------------------------------------------------------------------------


def test_missing_jars_are_downloaded_once_with_a_line_of_progress(cache: Path, downloads: dict[str, bytes]) -> None:
    lines: list[str] = []
    first = cached_jars("libs", [JAR, OTHER], "the libraries", report=lines.append)
    assert [path.name for path in first] == [JAR.file_name, OTHER.file_name]
    assert lines == [f"downloading the libraries (once, to {cache}) ..."]
    assert cached_jars("libs", [JAR, OTHER], "the libraries", report=lines.append) == first
    assert (len(lines), downloads) == (1, {})


def test_a_cache_that_has_all_jars_is_not_written_to(cache: Path, downloads: dict[str, bytes]) -> None:
    cached_jars("libs", [JAR], "the library", report=lambda line: None)
    (cache / ".lock").unlink()
    cached_jars("libs", [JAR], "the library", report=lambda line: None)
    assert [file.name for file in cache.iterdir()] == [JAR.file_name]


def test_only_the_jars_that_are_missing_are_downloaded(cache: Path, downloads: dict[str, bytes]) -> None:
    cache.mkdir(parents=True)
    (cache / OTHER.file_name).write_bytes(b"another jar")
    cached_jars("libs", [JAR, OTHER], "the libraries", report=lambda line: None)
    assert list(downloads) == ["other"]


def test_a_jar_in_the_cache_that_was_damaged_is_replaced(cache: Path, downloads: dict[str, bytes]) -> None:
    cache.mkdir(parents=True)
    (cache / JAR.file_name).write_bytes(b"truncat")
    [path] = cached_jars("libs", [JAR], "the library", report=lambda line: None)
    assert path.read_bytes() == CONTENT


def test_a_download_with_another_checksum_is_rejected_and_not_kept(cache: Path, downloads: dict[str, bytes]) -> None:
    downloads["lib"] = b"something else"
    with pytest.raises(ConfigurationError) as raised:
        cached_jars("libs", [JAR], "the library", report=lambda line: None)
    assert str(raised.value) == (
        f"{JAR.coordinates}: the downloaded file does not have the pinned SHA-256 checksum {JAR.sha256}: check the "
        "mirror in S3SINK_MAVEN_ROOT"
    )
    assert not (cache / JAR.file_name).exists()


def test_a_failed_download_can_be_repeated(cache: Path, downloads: dict[str, bytes]) -> None:
    content = downloads.pop("lib")
    with pytest.raises(TransientError):
        cached_jars("libs", [JAR], "the library", report=lambda line: None)
    downloads["lib"] = content
    assert cached_jars("libs", [JAR], "the library", report=lambda line: None)[0].read_bytes() == CONTENT


def test_progress_is_on_standard_error_by_default(
    cache: Path, downloads: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    cached_jars("libs", [JAR], "the library")
    output = capsys.readouterr()
    assert (output.out, output.err.startswith("downloading the library")) == ("", True)


# -- the places --------------------------------------------------------------------------------------------------------


def image(folder: Path, *versions: str) -> Path:
    """A directory with the jars of Kafka's client in these versions, as in an image."""
    folder.mkdir(parents=True)
    for jar in CLIENT:
        for version in versions:
            (folder / f"{jar.artifact}-{version}.jar").touch()
    return folder


@pytest.fixture
def places(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parent of all places; the cache has no jars and must not be asked."""
    monkeypatch.delenv("S3SINK_JARS", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setattr(jars, "cached_jars", lambda name, *_, **__: [Path(f"/cache/{name}")])
    return tmp_path


def test_the_jars_of_an_image_are_found_before_those_of_spark_and_of_the_cache(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client_jars() == [Path("/cache/client")]
    image(places / "spark" / "jars", "4.2.0")
    assert {path.parent for path in client_jars()} == {places / "spark" / "jars"}
    monkeypatch.setenv("S3SINK_JARS", str(image(places / "mine", "4.2.0")))
    assert {path.parent for path in client_jars()} == {places / "mine"}


def test_an_image_has_one_file_for_each_jar_of_any_version(places: Path) -> None:
    image(places / "spark" / "jars", "4.2.0", "4.3.0")
    assert [path.name for path in client_jars()] == [f"{jar.artifact}-4.3.0.jar" for jar in CLIENT]


def test_a_place_without_one_of_the_jars_is_passed_over(places: Path) -> None:
    folder = image(places / "spark" / "jars", "4.2.0")
    (folder / f"{CLIENT[-1].artifact}-4.2.0.jar").unlink()
    (folder / f"{CLIENT[-1].artifact}-extra-4.2.0.jar").touch()
    assert client_jars() == [Path("/cache/client")]


def test_without_spark_home_the_jars_are_those_of_pyspark(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    asked: list[Path] = []

    def present(folder: Path, asked_for: Sequence[Jar]) -> None:
        asked.append(folder)

    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr(jars, "_present", present)
    client_jars()
    assert asked == [Path(pyspark.__file__).parent / "jars"]


# -- the archive of classes --------------------------------------------------------------------------------------------


def test_other_jars_have_another_cds_archive(tmp_path: Path) -> None:
    one, other = tmp_path / "a.jar", tmp_path / "b.jar"
    one.touch()
    other.touch()
    assert archive_path([one]) != archive_path([one, other])


def test_a_jar_that_was_replaced_has_another_cds_archive(tmp_path: Path, cache: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.touch()
    before = archive_path([jar])
    assert archive_path([jar]) == before
    os.utime(jar, ns=(1, 1))
    assert archive_path([jar]) != before
    assert before.parent == cache.parents[1] / "jvm"
