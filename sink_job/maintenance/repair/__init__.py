"""`s3sink repair`: restores missing and damaged objects with the bytes that the ledger records.

`damage` finds them, `inspection` compares what is stored at a key, `version_source` and `kafka_source` upload the
recorded bytes again, `replacement` completes such an upload, `kept_bytes` keeps what was there before, `run_marks` lets
a later run find the uploads of one that was killed, and `repairer` puts them together. `results` is the report.
"""
