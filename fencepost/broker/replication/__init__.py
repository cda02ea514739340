"""Replicas: roles, high watermarks, in-sync replicas, and the checks before partition requests."""
