"""Observes one sink: its objects, the report of its driver, and dry runs."""
