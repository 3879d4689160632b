"""The watches of Kopf, the object cache that they fill, and the queue of sinks to reconcile."""
