"""Logs in files, as Kafka lays them out, and the file systems that they lie in."""
