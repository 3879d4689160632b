"""Avro objects in tables: what their headers say, and the field ids of their columns, which tables have by name."""
