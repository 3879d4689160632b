"""`make demo`: a year of flights through the whole sink, with a kill -9 in the middle and the proof at the end."""
