"""JSON without a schema, with Connect's envelope, with a JSON Schema, and typed by a schema of the sink."""
