"""The cache that several checkouts share: no checkout removes what another one uses."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from devtools import images


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
