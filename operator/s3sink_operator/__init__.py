"""Watches S3Sink objects, writes the Kubernetes objects that run them, and tells in their status what goes on."""
