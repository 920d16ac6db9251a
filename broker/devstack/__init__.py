"""Launchers and stand-ins for development. In no wheel; needs the ``dev`` extra."""
