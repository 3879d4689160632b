"""Spark: the session, the reader of exact offset ranges from Kafka, and the engine that runs the tasks of a round.

Runs in the driver and in Spark's Python workers. This package imports nothing, so that modules without PySpark can be
imported alone.
"""
