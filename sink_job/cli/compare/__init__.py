"""`s3sink compare`: the command and its output."""
