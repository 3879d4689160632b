"""`kubectl s3sink`: looks at S3Sinks and asks for actions, as a plug-in of kubectl.

Every call is kubectl's own, so who one is, which cluster is meant and how it is reached are settled as for any other
command of kubectl, and nothing beside the base of the `s3sink` distribution is needed. Actions write annotations of the
S3Sink, which override its spec and never touch it: what Git holds stays as it is.
"""
