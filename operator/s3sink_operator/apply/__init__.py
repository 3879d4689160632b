"""Writes a decision to the API server."""
