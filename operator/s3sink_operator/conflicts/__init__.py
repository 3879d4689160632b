"""Sinks that claim the same resources."""
