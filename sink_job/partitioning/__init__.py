"""Paths and keys of objects: fields, timestamps, date patterns and time zones. Pure: uses no clock, no S3, no Kafka.

Runs in Spark's Python workers, and in `s3sink simulate`.
"""
