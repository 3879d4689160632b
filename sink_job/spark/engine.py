"""Runs a round's tasks on Spark: exact ranges from Kafka into `mapInArrow`, one call of the round's function per topic-partition."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from sink_job.api.types import TopicPartition
from sink_job.kafka.properties import KafkaProperties
from sink_job.spark.types import Columns, Range, Work


class SparkEngine:
    """See `sink_job.spark.types.Engine`."""

    def __init__(self, spark: SparkSession, properties: KafkaProperties, *, group_id: str) -> None:
        raise NotImplementedError

    def run(
        self,
        *,
        ranges: Mapping[TopicPartition, Range],
        idle: Sequence[TopicPartition],
        inputs: Mapping[TopicPartition, bytes],
        columns: Columns,
        fn: Work,
    ) -> dict[TopicPartition, bytes]:
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError
