"""Prepares the JVM's files of the job image: Kafka's client among Spark's jars, the CDS archive, the sink's classes,
and in the cache the jars of a login with IAM of MSK.

The build of the image runs `prepare_image.py FOLDER`. The files below FOLDER have their paths below /, which makes them
a separate layer. The JVM checks the archive by the times of its files, and layers store whole seconds, so the files get
whole-second times first.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyspark

from sink_job.engine.cache import cache_dir
from sink_job.spark.class_data_sharing import build_cds_archive
from sink_job.spark.jars import client_jars
from sink_job.spark.login_jars import FOLDER, msk_iam_jars

JARS = Path(pyspark.__file__).parent / "jars"


def main(folder: Path) -> None:
    jars = [Path(shutil.copyfile(jar, JARS / jar.name)) for jar in client_jars()]
    of_login = [_cached(jar) for jar in msk_iam_jars()]
    os.environ.pop("S3SINK_JARS", None)  # now the files are where drivers find them
    for jar in jars:
        os.utime(jar, (0, 0))
    archive = build_cds_archive()
    for file in [*jars, *of_login, archive, *archive.parent.glob("*.jar")]:
        copy = folder / file.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
        print(file)


def _cached(jar: Path) -> Path:
    """The jar at its place in the cache, which belongs to the image."""
    place = cache_dir() / "jars" / FOLDER / jar.name
    if place != jar:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(jar, place)
    return place


if __name__ == "__main__":
    main(Path(sys.argv[1]))
