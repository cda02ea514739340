"""The HTTP API through which a test reads the state of a cluster and changes it.

A server imports `lazy_app` alone; the others cost the imports of h11 and the verbs.
"""
