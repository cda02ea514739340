"""The HTTP API through which a test reads the state of a cluster and changes it.

A server imports `lazy_app` alone; every other module costs the import of Starlette.
"""
