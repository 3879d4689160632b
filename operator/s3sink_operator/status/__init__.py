"""The status of an S3Sink: its model, its sections, and its metrics."""
