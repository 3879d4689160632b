"""What it takes the operator to look after many sinks, on a real API server. See bench/README.md."""
