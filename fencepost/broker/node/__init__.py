"""Brokers and the cluster that they form, and what an operator does to them."""
