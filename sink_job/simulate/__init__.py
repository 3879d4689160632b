"""Simulation of a sink without Kafka, S3 and Spark: `s3sink simulate`.

This package runs in the command.
"""
