"""Alembic's entry."""

from providers.migration import run_environment

run_environment()
