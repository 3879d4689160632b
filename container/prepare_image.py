"""Makes what Spark is to find when it starts: the Kafka connector among its own jars, and the archive of its classes.

`bake.py FOLDER`, while the job's image is built: the files lie below FOLDER as they are to lie below /, so that they
are a layer of their own. The archive is known by the times of its files, and layers keep whole seconds, so the files
get such times first.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyspark

from sink_job.spark.class_data_sharing import build_cds_archive
from sink_job.spark.jars import connector_jars

JARS = Path(pyspark.__file__).parent / "jars"


def main(folder: Path) -> None:
    jars = [Path(shutil.copyfile(jar, JARS / jar.name)) for jar in connector_jars()]
    os.environ.pop("S3SINK_JARS", None)  # from here on they are where drivers will find them
    for jar in jars:
        os.utime(jar, (0, 0))
    for file in [*jars, build_cds_archive()]:
        copy = folder / file.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
        print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
