"""The command line: one module for each command. `main` selects it; large packages are imported only when it runs."""
