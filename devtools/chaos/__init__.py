"""Runs sinks under random faults and checks that each record is in exactly one object."""
