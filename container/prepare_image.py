"""Prepares the JVM's files of the job image: Kafka's client among Spark's jars, the CDS archive, the sink's classes.

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

from sink_job.spark.class_data_sharing import build_cds_archive
from sink_job.spark.jars import client_jars

JARS = Path(pyspark.__file__).parent / "jars"


def main(folder: Path) -> None:
    jars = [Path(shutil.copyfile(jar, JARS / jar.name)) for jar in client_jars()]
    os.environ.pop("S3SINK_JARS", None)  # now the files are where drivers find them
    for jar in jars:
        os.utime(jar, (0, 0))
    archive = build_cds_archive()
    for file in [*jars, archive, *archive.parent.glob("*.jar")]:
        copy = folder / file.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
        print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
