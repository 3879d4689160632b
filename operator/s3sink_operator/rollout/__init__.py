"""The rollout of new operator defaults over all sinks."""
