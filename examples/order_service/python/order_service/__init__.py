"""An order service: `outbox` takes orders, `relay` sends them to Kafka, `shipping` handles them.

The subject is what such a service does when brokers fail; ../../README.md tells it.
"""
