"""What can be done to a cluster, as data: every verb once, with what it takes and what it answers.

HTTP, command line, scenario files and Python are made from the same `catalogue`. Nothing here knows
how a verb is carried out; `remote` asks a served cluster to do so.
"""
