"""Bytes to typed messages and back: frames, codec, API table, record batches, error codes."""
