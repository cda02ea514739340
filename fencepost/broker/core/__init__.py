"""What every room of the broker stands on: time, waits, events, contexts, outcomes."""
