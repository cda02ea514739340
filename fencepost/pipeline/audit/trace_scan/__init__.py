"""What is left of the exchanges of a trace when they come to the rules.

Most exchanges change nothing that a rule finds: an answer is as large as the one before it, an
epoch is known already. They are left out where they are read in order, a stretch after the other:
a scan goes over them with a state of its own, which does not grow with them (`scan`). Rules then
find in what is left what they find in all.

The exchanges of a partition go through two such passes (`passes`), each in its own order.
"""
