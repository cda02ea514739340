"""What brokers do with the remote tier (KIP-405): copying, expiring, reading, starting from it.

`remote_log_manager.RemoteLogManager` is one broker's; the other modules hold what it does, a
subject each.
"""
