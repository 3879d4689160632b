"""The interface between the coordinator and whatever runs its tasks, and the thread pools of both. Imports `api` alone.

Runs in every process.
"""
