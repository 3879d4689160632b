"""JSON Schema: documents, schemas and values as Connect's, projection and the converter."""
