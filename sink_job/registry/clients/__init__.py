"""The clients of schema registries. Only they import HTTP clients and boto3."""
