"""The statements of the query engines: one module for those that share a syntax."""
