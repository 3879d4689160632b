"""Objects that a table lacks because they did not exist when it was registered: `onMissing: Skip`."""
