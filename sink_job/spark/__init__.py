"""Spark as the rounds see it: a session (`session`), exact reads from Kafka (`read`), and the engine that runs a round's tasks (`engine`).

Nothing is imported here: `types` is the seam, and whoever needs only that must not pay for PySpark.
"""
