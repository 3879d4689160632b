"""The envelope of a record: key, headers and origin beside its value (`format.envelope`)."""
