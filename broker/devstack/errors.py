"""What can go wrong with a development stack."""

from __future__ import annotations


class DevStackError(Exception):
    """The stack cannot start or go on. The message is for the person at the keyboard."""


class DevStackInUseError(DevStackError):
    """Another ``broker dev`` uses the data directory."""
