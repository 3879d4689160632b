-- Any new text restarts the sink, from where its ledger says.
local os = require("os")
local annotations = obj.metadata.annotations or {}
annotations["s3sink.io/restart"] = os.date("!%Y-%m-%dT%XZ")
obj.metadata.annotations = annotations
return obj
