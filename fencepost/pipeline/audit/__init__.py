"""The audit: it checks logs, tier and trace of a cluster against rules."""
