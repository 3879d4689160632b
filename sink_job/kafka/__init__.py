"""Kafka as the driver sees it: properties shared with the reader, and the admin client, fed in bulk.

Nothing is imported here: executors and pure parts import single modules, and must not pay for py4j.
"""
