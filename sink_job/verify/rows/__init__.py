"""The rows of objects as values."""
