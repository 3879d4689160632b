"""The first claim of a ledger in the place of another writer, such as a connector of Kafka Connect."""
