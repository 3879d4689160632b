"""What every Python worker of Spark needs. `sink_job.spark.daemon`, from which the workers are forked, imports it once.

It starts no thread and opens no connection.
"""

from sink_job.s3 import load_service_descriptions
from sink_job.writer import object_rebuilder, partition_writer, task_attempt

__all__ = ["object_rebuilder", "partition_writer", "task_attempt"]

load_service_descriptions()
