"""Scenarios: what happens to a cluster and to its clients, told in a file and played.

`document` reads a file and knows where each of its values stands; `format` makes a `model.Scenario`
of it, or says what is wrong and where. `play` plays one on a cluster: its steps are verbs, or
client actions (`actions`, carried out by `acting`), and what they answer is compared with what the
file expects (`compare`). `report` and `junit` tell how it went.

The files that ship are in ``fencepost/scenario/shipped``.
"""
