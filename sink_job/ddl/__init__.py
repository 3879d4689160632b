"""`s3sink ddl`: the statement that creates a table over the objects of a sink, for a query engine.

Pure, but for `schema_source`: a schema and the settings of objects become a `SinkTable`, and `dialects` print it.
"""
