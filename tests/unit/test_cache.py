"""The cache that several checkouts share: no checkout removes what another one uses."""

from __future__ import annotations

import os
import time
from pathlib import Path
from zipfile import ZipFile

import pytest

from devtools import images
from sink_job.spark import class_data_sharing
from sink_job.spark.cache import cache_dir


def test_an_image_archive_stays_while_a_process_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_in_use", [])
    used, unused = tmp_path / "job-1.tar", tmp_path / "job-2.tar"
    for path in (used, unused):
        path.touch()
    images._use(used)
    for path in (used, unused):
        images._remove_unless_used(path)
    assert [path.name for path in tmp_path.iterdir()] == ["job-1.tar"]
    images._in_use.pop().close()
    images._remove_unless_used(used)
    assert list(tmp_path.iterdir()) == []


def test_kept_images_are_the_newest_of_each_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_in_use", [])
    monkeypatch.setenv("S3SINK_CACHE", str(tmp_path))
    monkeypatch.setenv("S3SINK_IMAGES", "kept")
    folder = tmp_path / "images"
    folder.mkdir()
    for name, age_s in (("job-old", 60), ("job-new", 0), ("operator-one", 30)):
        (folder / f"{name}.tar").touch()
        os.utime(folder / f"{name}.tar", (time.time() - age_s,) * 2)
    assert [image.name for image in images.built("job", "operator")] == [
        "localhost/s3sink-job:new",
        "localhost/s3sink-operator:one",
    ]
    for file in images._in_use:
        file.close()


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


def test_a_relative_cache_is_below_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("S3SINK_CACHE", "cache")
    assert cache_dir() == tmp_path / "cache"
