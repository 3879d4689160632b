"""The ledger: the write-ahead log on S3. It decides which objects exist and which driver owns the sink.

Runs in the driver and in commands. Executors import `state`, `staging` and `offset_checksum`, but never the store.
"""
