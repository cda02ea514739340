"""Faults: what a test does to requests, as data.

`rules.FaultRule` is a fault: `selectors` say which requests it hits, one of `kinds`, or several in
sequence, what happens to them. `registry` holds the faults that are set and intercepts requests
before a broker's handlers, from clients and from other brokers alike. While no fault is set, a
request costs one check of an empty tuple. Records are decoded only while a fault selects them.

A fault may hit connections or ports instead, which have no request yet: the server asks the
registry what is to happen to them, and does it (`server.listener`).

A new kind of fault is a class in `kinds`; the control API, the command line and the page derive
theirs from it. An outcome that a connection does not know yet is a class in `core.outcomes` that
the connection handles.
"""
