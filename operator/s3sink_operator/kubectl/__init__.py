"""`kubectl s3sink`: shows S3Sinks and requests actions, as a plug-in of kubectl. Runs on the machine of the user.

Every call is a call of kubectl, which settles user, cluster and connection. The plug-in requires only the base of the
`s3sink` distribution. An action writes annotations of the S3Sink, which override its spec. The spec is never changed,
so it stays as Git has it.
"""
