"""The messages between the driver and the tasks in Spark's workers: what a task gets and what it returns.

`parameters` is the same for all tasks of a round. `write` and `rebuild` have the input and the result for each
topic-partition, which travel as msgpack.
"""
