"""Commands that change the ledger of a sink that does not run: `reset-offsets` and `discard-open`.

Runs in a command.
"""
