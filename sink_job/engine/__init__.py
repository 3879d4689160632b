"""The interface between the coordinator and the engine that runs its tasks, and their thread pools. Imports `api`
alone.

Runs in every process.
"""
