-- Health of an S3Sink: the status of the generation in Git, read as kstatus reads it. No Lua
-- library is required.

-- Failures in a row, of any category, after which the health is Degraded until the sink is Ready.
local MAX_FAILURES = 3

local status = obj.status or {}
local annotations = obj.metadata.annotations or {}

local function condition(kind)
  for _, each in ipairs(status.conditions or {}) do
    if each.type == kind then
      return each
    end
  end
  return {}
end

local function health(is, message)
  return { status = is, message = message }
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "The sink is being deleted")
end
if annotations["reconcile.s3sink.io/paused"] == "true" then
  return health("Suspended", "The operator is paused for this sink: annotation reconcile.s3sink.io/paused")
end
if status.observedGeneration == nil or status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "Waiting for the operator to observe this generation")
end

-- Ready always carries the reason and the message of the last reconcile pass.
local ready = condition("Ready")
local message = ready.message or "Waiting for the condition Ready"
if condition("Stalled").status == "True" then
  return health("Degraded", message)
end

local desired = status.desiredState
if desired == "Paused" or desired == "Stopped" then
  local is = (status.progress or {}).phase == desired and "Suspended" or "Progressing"
  return health(is, message)
end

if ready.status == "True" and condition("Reconciling").status ~= "True" then
  return health("Healthy", message)
end
if ready.status ~= "True" and ((status.retry or {}).failures or 0) >= MAX_FAILURES then
  return health("Degraded", message)
end
return health("Progressing", message)
