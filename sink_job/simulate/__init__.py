"""What settings do to given records, without Kafka, S3 or Spark: `s3sink simulate`.

Runs in a command.
"""
