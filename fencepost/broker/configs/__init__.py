"""Kafka's broker and topic configs: what there is, what it means here, and which value holds.

=======================  =====================================================================
`config_table`           every config of Apache Kafka 4.3.1 and of fencepost, as data
`config_def`             types, values, validation of one config
`topic_configs`          topic configs, and whether a topic may have a set of them, tiered or not
`broker_configs`         the same for broker configs, static and dynamic
`config_layers`          where a broker's configs come from, and which of them holds
`effective_configs`      the values that the broker reads: its own, and each topic's
`operations`             the operations of IncrementalAlterConfigs
`config_entries`         the answers of DescribeConfigs
=======================  =====================================================================
"""
