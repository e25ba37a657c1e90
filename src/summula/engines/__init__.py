"""Adapters to clusters. `core` loads them by name when it meets a client or a collection; nothing imports them."""
