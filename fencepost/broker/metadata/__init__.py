"""The cluster's metadata: the image that the controller publishes, and lookups in it."""
