"""Spark as the rounds see it: a session, exact reads from Kafka, and the engine that runs a round's tasks.

Nothing is imported here: `types` is the seam, and whoever needs only that must not pay for PySpark.
"""
