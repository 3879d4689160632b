"""The ledger: the write-ahead log on S3 that decides which objects exist, and who may write it.

Runs in the driver and in commands. Executors import its data types (`state`, `staging`, `offset_checksum`), never its
store.
"""
