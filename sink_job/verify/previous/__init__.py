"""The objects of the writer before a sink, compared with Kafka before the first claim."""
