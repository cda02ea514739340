"""Kafka's broker and topic configs: what there is, what it means here, and what holds where.

=================  ===============================================================================
`tables`           every config of Apache Kafka 4.3.1 as data
`definitions`      types, values, validation
`topic`, `broker`  the two tables, and what makes a set of configs right
`own`              fencepost's own configs
`layers`           where a broker's configs come from, and which of them holds
`resolve`          what the broker reads: its settings, and each topic's
`alter`            the operations of IncrementalAlterConfigs
`change`           whether a resource's configs may become what a request makes of them
`describe`         what DescribeConfigs answers
=================  ===============================================================================
"""
