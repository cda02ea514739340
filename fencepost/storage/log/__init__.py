"""A replica's log: segments, leader epochs, producer state, appends, compaction."""
