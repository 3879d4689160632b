"""What the output formats share: the interfaces of rows and of objects, compression, parts and spill buffers."""
