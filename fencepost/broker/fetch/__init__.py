"""The consumers' read path: fetch sessions, replica selection, the ListOffsets gate (KIP-207)."""
