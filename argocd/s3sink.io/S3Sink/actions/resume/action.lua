-- The override goes, so that Git decides again; where Git itself says Paused or Stopped, it is overridden.
local annotations = obj.metadata.annotations or {}
if (obj.spec.state or "Running") == "Running" then
  annotations["s3sink.io/state"] = nil
else
  annotations["s3sink.io/state"] = "Running"
end
-- An empty table would come back as a list.
if next(annotations) == nil then
  annotations = nil
end
obj.metadata.annotations = annotations
return obj
