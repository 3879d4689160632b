"""Real servers and tools for tests, demo and bench. Not part of the distribution.

kafka, topics            a broker and its topics
s3, bucket_listing       S3 servers and their objects
faults                   proxies that count requests and inject faults
kube                     a Kubernetes control plane and a node
images, image_builders   container images
sink_process             the `s3sink` command as a process
operator_process         the operator as a process
simulation, chaos        random tests of the exactly-once protocol
processes, fork_server, certificates, jars    used by the others
"""
