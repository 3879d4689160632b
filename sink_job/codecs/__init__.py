"""Chooses by the settings of a sink: its converter, its output format, and the container of an object."""
