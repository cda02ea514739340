"""A file into a Kafka partition, every line once: the bulk load of KIP-27.

Line i of the file is the record at offset base + i, whatever happens on the way, and however often
the program is killed and started again. `source` is the file, `written` what the log has of it
already, `loading` brings the rest. README.md tells the story.
"""
