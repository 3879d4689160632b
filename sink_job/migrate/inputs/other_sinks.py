"""Classes of connectors: which can be converted, and what differs with the others."""

from __future__ import annotations

import re
from typing import Final

S3_SINK: Final = "io.confluent.connect.s3.S3SinkConnector"
ALIASES: Final = (S3_SINK, "S3SinkConnector", "S3Sink")

_OTHERS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"io\.aiven\..*s3.*",
        "Aiven's S3 sink names objects by `file.name.template` (by default topic, partition and start offset without "
        "padding), writes CSV, JSON arrays or JSON lines of chosen fields, and has keys of its own",
    ),
    (
        r"(io\.lenses|com\.datamountaineer)\.streamreactor\..*s3.*",
        "Lenses' S3 sink is configured by statements (`connect.s3.kcql`), names objects by the last offset, and "
        "records its position in the bucket and not in the consumer group",
    ),
    (
        r"org\.apache\.camel\.kafkaconnector\..*",
        "Camel's S3 sink writes an object for each record or batch, with a name from headers or an exchange id",
    ),
    (
        r"com\.cloudera\.dim\..*",
        "Cloudera's S3 sink has keys of its own (`aws.s3.bucket`, `output.writer`) and other names of objects",
    ),
    (
        r"S3_SINK|S3_SINK_V2",
        "this is the managed S3 sink of Confluent Cloud, whose keys differ (`input.data.format`, `output.data.format`, "
        "`time.interval`): write those of the S3SinkConnector (format.class, partitioner.class, value.converter)",
    ),
    (r"com\.redpanda\..*s3.*", "Redpanda's S3 sink has keys of its own and other names of objects"),
    (
        r"(com\.spredfast|com\.deviantart|org\.apache\.flume)\..*",
        "this S3 sink has other names of objects and an index of its own",
    ),
    (r"io\.confluent\.connect\.s3\.source\..*", "this is the source connector, which reads objects"),
    (r"io\.confluent\.connect\.(gcs|azure|hdfs\d?)\..*", "its store is not S3"),
    (r".*[Ii]ceberg.*|.*[Dd]elta[Ll]ake.*|.*[Hh]udi.*", "it writes a table, and s3sink writes objects"),
    (r".*Source(Connector)?", "this is a source connector, which reads no topics"),
)


def other_class(name: str) -> str | None:
    """What differs with a connector of this class; None if it is the S3 sink that can be converted."""
    if name in ALIASES:
        return None
    for pattern, sentence in _OTHERS:
        if re.fullmatch(pattern, name):
            return sentence
    return "only the class io.confluent.connect.s3.S3SinkConnector can be converted"
