"""The verbs: what a test can do to a cluster, each with its request model and its response model.

HTTP, command line, scenario files and Python are made from the same `catalogue`. `remote` sends
verbs to a served cluster; the room `control` carries them out.
"""
