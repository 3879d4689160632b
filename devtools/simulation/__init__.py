"""Whole sinks in one process and in simulated time: the project's own driver over a simulated Kafka and a simulated S3.

A seed determines a run (settings, records, faults and the order of all steps), so it reproduces the run exactly.
"""
