"""Transforms of values before paths and rotation (`spec.transforms`), with the results of Kafka Connect's own.

`transform_list` has the list of a sink, which takes the values of a batch as a column. Each other module has the
transforms of one kind. A transform that cannot handle a record raises InvalidValue: the record is a data error.
"""
