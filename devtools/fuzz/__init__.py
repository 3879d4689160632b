"""Random and mutated values and schemas for the converters: `python -m devtools.fuzz --converter Avro --seconds 60`.

Each converter runs in a process of its own (`child`), so that a crash of native code, a panic, too much memory and a
batch without an end are findings. A batch is a function of the converter, the seed and the number of the batch
(`targets.case_of`). `checks` has the properties that must hold. A new converter is one entry of `targets.TARGETS`.
"""
