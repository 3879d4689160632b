"""Partitions of objects in tables: the values that footers prove, and the partition specs for them."""
