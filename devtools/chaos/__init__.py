"""`make chaos`: whole sinks under random faults, simulated or with real processes and servers (`--real`)."""
