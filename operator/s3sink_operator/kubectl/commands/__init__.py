"""The commands of `kubectl s3sink`, with their arguments and what they do: a module for each, one for those that change
whether a sink runs, and what they share (`arguments`, `run_action`).

`add_parser` or `add_parsers` adds them. The parsed arguments have `run`, which gets kubectl and the arguments
and returns the exit code.
"""
