"""A session with an executor in a JVM of its own (Spark's master `local-cluster`), which reads as requested.

`python -m tests.support.executor_reads BOOTSTRAP FOLDER`: a process can have one session only, and that of the tests
has no executors. The first line of output is the beginning of the paths of sockets. Each line of input is a JSON list:
the name of a function of `spark_tasks`, its arguments before the topic-partition, the topic, and the end of the range.
The answer is the result of partition 0. An empty line ends the process.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

from bench.spark_pass import executor_config
from sink_job.api.topic_partition import TopicPartition
from sink_job.spark.conf import SparkSettings
from sink_job.spark.jars import client_jars
from sink_job.spark.session import session
from tests.support import spark_tasks
from tests.support.reader import engine_of, run

MEMORY = 1 << 30


def main() -> None:
    bootstrap, folder = sys.argv[1:]
    settings = SparkSettings(
        app_name="executor-reads",
        jars=client_jars(),
        cores=1,
        temp_dir=Path(folder),
        cluster=executor_config(1, MEMORY),
    )
    with session(settings) as spark:
        engine = engine_of(spark, {"bootstrap.servers": bootstrap})
        print(engine._reader.sockets, flush=True)
        while line := sys.stdin.readline().strip():
            name, given, topic, end = json.loads(line)
            function = partial(getattr(spark_tasks, name), *given)
            tp = TopicPartition(topic, 0)
            print(run(engine, function, {tp: (0, end)})[tp].decode(), flush=True)


if __name__ == "__main__":
    main()
