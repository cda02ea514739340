"""Scenarios: what happens to a cluster and to its clients, told in a file and played.

`document` reads a file and knows where each of its values stands; `loader` makes a `model.Scenario`
of it, or says what is wrong and where. `player` plays one on a cluster: its steps are verbs, or
client actions (`actions`, carried out by `actions.executor`), or they run processes of the user
(`process_steps`), and `assertions` compares what they answer with what the file expects. `runner`
serves the cluster for it. `formatting` tells how it went, as text and as JUnit's XML.
`json_schema` describes the files for editors.

The files that ship are in ``fencepost/scenario/shipped``.
"""
