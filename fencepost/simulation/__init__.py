"""The cluster under a seed: a virtual clock, a simulated network, and invariants at every step."""
