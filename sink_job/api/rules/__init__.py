"""The rules for a manifest that concern more than one field."""
