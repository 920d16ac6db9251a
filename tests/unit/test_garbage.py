"""What a serving process leaves to the garbage collector."""

import json
import subprocess
import sys

from broker.cli.garbage import YOUNG_MAX

LOOK = """
import gc, json
from broker.cli.garbage import settle
import broker.config
before = len(gc.get_objects())
settle()
print(json.dumps([before, gc.get_freeze_count(), len(gc.get_objects()), *gc.get_threshold()]))
"""


def test_what_is_loaded_is_not_walked_through_again() -> None:
    """Speed: what stays until the end is out of every later walk, and walks are fewer."""
    # In a process of its own: tests would never get rid again of what is frozen.
    told = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, check=True, text=True)
    before, frozen, left, young, middle, old = json.loads(told.stdout)
    assert frozen > before / 2
    assert left < before / 10
    assert (young, middle, old) == (YOUNG_MAX, 10, 10)
