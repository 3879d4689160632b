"""The interface between the coordinator and the engine that runs its tasks, their thread pools, and the retry policy of
requests. Imports `api` alone.

Runs in every process.
"""
