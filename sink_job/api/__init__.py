"""The contract of a sink: its spec, its errors and its report. Pure, and all that the operator imports of the job."""
