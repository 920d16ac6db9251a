"""Bundles: what moves between brokers, what is checked about it, and what an import makes of it."""
