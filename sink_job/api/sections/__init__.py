"""The sections of a manifest."""
