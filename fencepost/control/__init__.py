"""Steering: the HTTP API through which a test sees the cluster and tells it what to do.

A server needs `lazy_app` alone; everything else costs the import of FastAPI.
"""
