"""Batches of records, and the fields that paths and times need."""
