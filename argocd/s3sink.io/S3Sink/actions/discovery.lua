-- Which actions make sense now, by what is wanted of the sink: the annotation s3sink.io/state, else spec.state.
local annotations = obj.metadata.annotations or {}
local wanted = annotations["s3sink.io/state"] or obj.spec.state or "Running"
local going = obj.metadata.deletionTimestamp ~= nil

return {
  ["restart"] = { ["disabled"] = going or wanted ~= "Running", ["iconClass"] = "fa fa-fw fa-redo" },
  ["pause"] = { ["disabled"] = going or wanted == "Paused", ["iconClass"] = "fa fa-fw fa-pause" },
  ["stop"] = { ["disabled"] = going or wanted == "Stopped", ["iconClass"] = "fa fa-fw fa-stop" },
  ["resume"] = { ["disabled"] = going or wanted == "Running", ["iconClass"] = "fa fa-fw fa-play" },
}
