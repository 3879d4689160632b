"""Credentials: from a Secret, or of an assumed role."""
