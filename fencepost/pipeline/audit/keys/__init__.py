"""Compacted replicas compared by keys: the newest value of each, whatever cleaners have taken."""
