"""The commands of `kubectl s3sink`, one module each: its arguments, and what it does.

`add_parser(commands, common)` adds the command. The parsed arguments have `run`, which gets kubectl and the arguments
and returns the exit code.
"""
