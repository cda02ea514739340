"""A cluster in files: log directories, the metadata log, checkpoints, restarts."""
