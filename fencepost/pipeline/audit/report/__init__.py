"""What an audit found as one HTML file, to be kept, sent and read anywhere."""
