"""The position of another writer, such as a connector of Kafka Connect, for the first start of a sink in its place."""
