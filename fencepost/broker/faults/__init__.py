"""Faults: what a test lets requests meet on their way, as data.

`rules` says what there is, `registry` holds what is set, `door` is where requests meet it: before a
broker's handlers, for clients and for other brokers alike. While no fault is set, a request costs
one look at an empty list.
"""
