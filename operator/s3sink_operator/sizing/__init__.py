"""The arithmetic of the memory and the number of executors. Pure."""
