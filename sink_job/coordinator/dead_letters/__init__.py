"""The dead-letter topic: the driver's part (docs/adr/0047-dead-letter-topic.md)."""
