"""Scans that leave out the exchanges of a trace which no rule needs.

Most exchanges change nothing that a rule finds: an answer is as large as the one before it, an
epoch is known already. They are left out where they are read in order, a stretch after the other:
a scan goes over them with a state of its own, which does not grow with them (`scan`). Rules find
the same in the other exchanges as in all.

The exchanges of a partition go through two such passes (`passes`), each in its own order.
"""
