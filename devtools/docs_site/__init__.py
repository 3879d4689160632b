"""The documentation site: its packages, its hooks for MkDocs, and its build."""
