-- What is open is published, then the driver is ended.
local annotations = obj.metadata.annotations or {}
annotations["s3sink.io/state"] = "Stopped"
obj.metadata.annotations = annotations
return obj
