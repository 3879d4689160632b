"""Which object a record goes to and when an object is closed: pure functions of records, settings and the round's
clock.

Nothing here reads a clock, a file or the network (but for the time-zone data that is part of the installation), so that
the simulator, the executors and the recovery of objects come to the same cuts.
"""
