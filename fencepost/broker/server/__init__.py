"""The asyncio edge: sockets, time and logs around the core, which knows of none of them."""
