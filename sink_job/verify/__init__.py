"""`s3sink verify`: shows that each committed record is in exactly one object.

Runs in a command. With `--deep`, `compare_task` runs in Spark's Python workers.
"""
