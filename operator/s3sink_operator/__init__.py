"""The operator: watches S3Sinks, manages the Kubernetes objects that run them, and writes their status."""
