"""Adapters to clusters. `core` imports them by name when it is given a client or a collection of a cluster library."""
