"""The producers' write path: appends, expected offsets (KIP-27), producer ids."""
