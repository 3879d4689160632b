"""The configuration of the operator: defaults for all sinks, and what authors of sinks may choose."""
