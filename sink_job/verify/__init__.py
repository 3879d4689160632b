"""The proof that each committed record is in exactly one object: `s3sink verify`.

Runs in a command. With `--deep`, `compare_task` runs in Spark's Python workers.
"""
