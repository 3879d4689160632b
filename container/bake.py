"""Puts the Kafka connector among Spark's own jars and makes the archive of classes, while the job's image is built.

Driver and executors find the jars there, and nothing is fetched when they start. The archive is known by the times of
its files, and layers keep whole seconds, so the files get such times first.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyspark

from sink_job.spark.archive import make_archive
from sink_job.spark.jars import connector_jars

HOME = Path(pyspark.__file__).parent


def main() -> None:
    files = [Path(shutil.copy(jar, HOME / "jars")) for jar in connector_jars()]
    for file in [*files, Path(pyspark.__file__)]:
        os.utime(file, (0, 0))
    shutil.rmtree(Path(os.environ["S3SINK_CACHE"]) / "jars")
    print(make_archive())


if __name__ == "__main__":
    main()
