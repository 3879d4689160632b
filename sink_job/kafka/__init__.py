"""Kafka: client properties for reader and admin client, the bulk admin client, and its errors.

Runs in the driver and in commands. This package imports nothing, so that executors can import single modules of it
without py4j.
"""
