"""Formats without a schema: bytes, text, CBOR, MessagePack, and delimited rows."""
