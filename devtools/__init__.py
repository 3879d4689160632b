"""Real servers and the tools around them, for tests, demo and bench. No part of the distribution.

`kafka` a broker, `topics` what is in it; `s3` the servers, `tree` what is in them, `fault_proxy` what goes wrong on the
way; `kube` a Kubernetes control plane; `sink` the command under test as a process; `processes`, `certificates`, `jars`,
`relay`, `http` what these stand on.
"""
