"""`s3sink compare`: compares the objects of a sink with those of another writer of the same topics.

Runs in a command, and reads the ledger and the store only. Listings decide what keys can decide; with `--deep` the
records are read.
"""
