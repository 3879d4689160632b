"""Protobuf: the compiler, schemas and messages as Connect's, and the converter."""
