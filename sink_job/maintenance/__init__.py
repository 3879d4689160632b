"""Commands that change the ledger of a stopped sink: `reset-offsets` and `discard-open`.

Runs in a command.
"""
