"""Use cases: the order of checks of one call, and nothing that a pure rule could say."""
