"""Bytes out: how records become rows of an object, and rows become blocks and parts of it."""
