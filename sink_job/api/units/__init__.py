"""Values of a manifest with units: sizes, durations, times and patterns of times."""
