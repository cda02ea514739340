"""The structs of every API, one module each; see tools/generate_messages.py."""
