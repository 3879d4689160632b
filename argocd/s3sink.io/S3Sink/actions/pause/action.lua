-- The driver is ended; open uploads stay.
local annotations = obj.metadata.annotations or {}
annotations["s3sink.io/state"] = "Paused"
obj.metadata.annotations = annotations
return obj
