"""The schemas of a sink in the driver: ids are resolved, schemas are inferred, and changes are noticed."""
