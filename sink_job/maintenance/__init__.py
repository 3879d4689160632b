"""Commands that change the ledger of a stopped sink: `reset-offsets`, `discard-open` and `forget-schema`.

Runs in a command.
"""
