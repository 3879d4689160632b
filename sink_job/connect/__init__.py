"""Kafka Connect's data model: schemas, logical types, projection, compatibility, and values as JSON. Pure."""
