"""What the converters share: their interface, schema ids, projection, and fields by schema."""
