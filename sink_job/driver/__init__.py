"""The driver process of a sink: wiring, signals, logs, the console, and the report over HTTP.

This module imports nothing. An invalid manifest is therefore reported before Spark, S3 and Kafka clients are loaded.
"""
