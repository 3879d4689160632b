"""From Kafka records to parts of S3 objects: convert, partition, rotate, encode, upload and stage.

Runs in Spark's Python workers. It imports neither the coordinator nor the ledger's store.
"""
