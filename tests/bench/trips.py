"""How often the broker speaks to its store and to its owner for each call: counted, not timed."""

from typing import Final

CALLS: Final = 10
UNHURRIED: Final = """
import broker.readiness
broker.readiness.LOOK_SECONDS = 3600.0
from broker.__main__ import main
main()
"""
"""A broker that looks at its readiness once an hour, so that all that is counted is of calls."""
