"""What runs in the Spark driver, its executors and on a laptop: the job that copies Kafka topics into S3 objects."""
