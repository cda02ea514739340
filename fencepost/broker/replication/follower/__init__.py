"""The follower of a partition: the state machine that fetches from the leader."""
