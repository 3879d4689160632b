"""The archive of classes: when it is built, what it has, and which archives are removed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from sink_job.api.errors import TransientError
from sink_job.spark import class_data_sharing
from sink_job.spark.class_data_sharing import build_cds_archive


def test_class_archives_of_other_checkouts_stay_for_a_week_after_their_last_use(tmp_path: Path) -> None:
    mine = tmp_path / "spark-mine.jsa"
    for path, age_s in ((mine, 0), (tmp_path / "spark-recent.jsa", 3600), (tmp_path / "spark-old.jsa", 8 * 86_400)):
        path.touch()
        os.utime(path, (time.time() - age_s,) * 2)
    class_data_sharing.remove_unused(mine)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spark-mine.jsa", "spark-recent.jsa"]


def test_the_class_archive_has_the_classes_of_kafkas_clients_without_those_of_other_libraries(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "client.jar", "w") as jar:
        for name in (
            "clients/admin/Admin.class",
            "common/record/Record$1.class",
            "shaded/x/X.class",
            "common/kafka.txt",
        ):
            jar.writestr(f"org/apache/kafka/{name}", "")
    names = class_data_sharing._kafka_classes(tmp_path / "client.jar")
    assert names == ["org.apache.kafka.clients.admin.Admin", "org.apache.kafka.common.record.Record$1"]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the archive, which does not exist yet."""
    path = tmp_path / "jvm" / "spark-mine.jsa"
    monkeypatch.setattr(class_data_sharing, "client_jars", list)
    monkeypatch.setattr(class_data_sharing, "archive_path", lambda jars: path)
    return path


@pytest.fixture
def sessions(archive: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings of the sessions that were started; each writes its archive when it ends."""
    started: list[Any] = []

    @contextmanager
    def session(settings: Any, exit_timeout_s: float) -> Iterator[Any]:
        started.append(settings)
        yield SimpleNamespace()
        option = settings.conf["spark.driver.extraJavaOptions"]
        Path(option.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"classes")

    class Engine:
        def __init__(self, *_: object, **__: object) -> None: ...

        def run(self, *, ranges: object, **_: object) -> None:
            if ranges:
                raise TransientError("no broker answers")

    monkeypatch.setattr(class_data_sharing, "session", session)
    monkeypatch.setattr(class_data_sharing, "SparkEngine", Engine)
    for loads in ("_load_kubernetes_client", "_load_kafka_client", "_compile_classes"):
        monkeypatch.setattr(class_data_sharing, loads, lambda *_: None)
    return started


def test_an_archive_is_complete_when_it_has_its_name(archive: Path, sessions: list[Any]) -> None:
    assert build_cds_archive() == archive
    assert archive.read_bytes() == b"classes"
    assert list(archive.parent.iterdir()) == [archive]
    [settings] = sessions
    assert settings.cores == 1


def test_an_archive_that_exists_is_used_again_and_kept_for_another_week(archive: Path, sessions: list[Any]) -> None:
    archive.parent.mkdir()
    archive.touch()
    os.utime(archive, (1, 1))
    assert build_cds_archive() == archive
    assert sessions == []
    assert archive.stat().st_mtime > 1


def test_an_archive_in_a_read_only_cache_is_used(
    archive: Path, sessions: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> None:
        raise PermissionError(30, "Read-only file system")

    archive.parent.mkdir()
    archive.touch()
    monkeypatch.setattr(os, "utime", denied)
    assert build_cds_archive() == archive


def test_unused_archives_are_removed_when_one_is_built(archive: Path, sessions: list[Any]) -> None:
    archive.parent.mkdir()
    unused = archive.with_name("spark-old.jsa")
    unused.touch()
    os.utime(unused, (1, 1))
    build_cds_archive()
    assert not unused.exists()
