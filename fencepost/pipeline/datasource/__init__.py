"""The Spark data source ``fencepost``: segments, tier objects and traces as Arrow."""
