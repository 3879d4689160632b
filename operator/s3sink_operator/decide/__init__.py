"""Decides what to do about one sink. Pure: `chain.decide` maps what was observed, and the time, to a decision."""
