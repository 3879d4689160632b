"""The contract of a sink: its spec, its errors and its report.

This package does no I/O. It is the only package of the job that the operator imports.
"""
