"""Bytes at rest: a replica's log, its segments, leader epochs and producer state."""
