"""The knowledge broker: one place where agents' knowledge is kept and given back safely."""
