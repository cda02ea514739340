"""The structs of every API, one module each; ``python -m tools.generate_messages`` writes them."""
