"""Behaviour: the cluster model, one handler module an API, and the asyncio server around them."""
