"""Steering: the HTTP API through which a test sees the cluster and tells it what to do.

`plane` is all that whoever serves a cluster needs; everything else costs the import of FastAPI.
"""
