"""JSON values under a schema of the sink, for the outputs Avro and Parquet."""
