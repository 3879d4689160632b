"""The process that runs a sink: wiring, signals, logs, the screen, and the report served by HTTP.

Nothing is imported here: a wrong manifest is told before Spark, S3 or Kafka are loaded.
"""
