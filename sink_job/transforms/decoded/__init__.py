"""Values with the schema of a registry or of the manifest as Connect's, for transforms. A module for each converter."""
