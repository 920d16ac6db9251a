"""Loads the fixtures that folders share."""

pytest_plugins = ["tests.fixtures.postgres"]
