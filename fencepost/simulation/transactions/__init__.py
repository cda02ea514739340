"""Transactional producers and read_committed consumers, and the checks of what they see.

`messages` are their requests, `producer` one producer, `readers` the consumers, `workload` all
of a cluster and what each action makes them do, `generator` what a seed makes them do. `ledger` has
what producers sent and were answered, `marker_checker` compares that with the logs of the
partitions, and `coordinator_checker` compares the coordinators with the log of decisions.
"""
