"""Side-by-side benchmarks: fencepost and its peers, in turns, in one run (``python -m bench``)."""
