"""What a manifest would do to live topics, before it is applied: `s3sink plan`.

A bounded sample of the topics is read once. The driver itself runs over it with a clock of its own and a bucket in
memory, so objects, rounds and requests are those of a run. What happens in a day is extrapolated from them.

This package runs in the command.
"""
