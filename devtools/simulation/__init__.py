"""Whole sinks in one process and in simulated time: the project's own driver over a simulated Kafka and a simulated S3.

A seed chooses a world (settings, records, faults) and everything that happens in it, so it reproduces a run exactly.
"""
