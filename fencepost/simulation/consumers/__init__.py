"""Applications with a consumer, whose core is that of `fencepost.client.Consumer`.

`kinds` are the consumers that a schedule names, `messages` their requests and answers on the way,
`application` one consumer and what it does with errors, `applications` all of a cluster. `consumed`
holds what a consumer has of a partition, `checker` compares that with what the leaders' logs held,
and `admitted` names what the proposals let consumers miss.
"""
