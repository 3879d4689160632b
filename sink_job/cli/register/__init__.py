"""The command `s3sink register`."""
