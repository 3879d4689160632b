module s3sink.test/schema-registry

go 1.25.0

require github.com/twmb/franz-go/pkg/sr v1.8.0
