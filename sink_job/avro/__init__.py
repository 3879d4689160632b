"""Avro: schemas from and to Connect's, decoders, encoders, containers and the converter."""
