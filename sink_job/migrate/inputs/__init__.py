"""Reads configurations of connectors and settings of workers: files of several forms, and running workers."""
