"""The main loop of the driver: it plans rounds, sends them to executors, records them in the ledger and publishes.

Runs in the driver process. Nothing in an executor imports it.
"""
