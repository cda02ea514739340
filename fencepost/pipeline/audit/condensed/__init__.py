"""Logs in few rows: how a task reads a segment, and how a partition's rows are read finer again.

Batches that follow one another without anything peculiar are one row, a window of offsets, with a
digest (`window_rows`). What concerns producers is folded while a segment is read (`segment_folds`).
Where copies of a partition differ, or a checkpoint names an offset within a window, the bytes of
that window are read once more, and its batches have rows of their own (`refinement`). Compacted
copies differ nearly everywhere and agree all the same, up to some offset (`compacted_copies`).
"""
