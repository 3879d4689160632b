"""The command line: one module a command, and `main` that picks it. Nothing heavy is imported before a command runs."""
