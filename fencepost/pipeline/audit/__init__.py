"""What a cluster and its clients did, proved or disproved from what they left behind."""
