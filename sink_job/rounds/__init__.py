"""The protocol: rounds that are planned, written, recorded and published, so that each record is in one object."""
