"""The controller: the only node that changes the cluster's metadata."""
