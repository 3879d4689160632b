"""Decides which records an object holds and when it closes. Pure: no clock, no S3, no Kafka.

Runs in Spark's Python workers, and in `s3sink simulate`.
"""
