"""Schemas of records: Kafka Connect's data model, its comparison and projection, and conversions from Avro, Protobuf
and JSON Schema.

Pure. Runs in the driver, in Spark's Python workers, and in `s3sink simulate`.
"""
