"""The remote tier of a log (KIP-405): what lies there, under which keys, and which of it counts."""
