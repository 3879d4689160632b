-- The actions that apply now, by the desired state of the sink: the annotation s3sink.io/state, or else spec.state.
local annotations = obj.metadata.annotations or {}
local desired = annotations["s3sink.io/state"] or obj.spec.state or "Running"
local going = obj.metadata.deletionTimestamp ~= nil

return {
  ["restart"] = { ["disabled"] = going or desired ~= "Running", ["iconClass"] = "fa fa-fw fa-redo" },
  ["pause"] = { ["disabled"] = going or desired == "Paused", ["iconClass"] = "fa fa-fw fa-pause" },
  ["stop"] = { ["disabled"] = going or desired == "Stopped", ["iconClass"] = "fa fa-fw fa-stop" },
  ["resume"] = { ["disabled"] = going or desired == "Running", ["iconClass"] = "fa fa-fw fa-play" },
}
