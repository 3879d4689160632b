"""The client of the API server, and the Lease of the replica that works."""
