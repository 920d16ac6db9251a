"""A worker that serves and does not end when it is told to."""

import signal
import sys
import time

from broker.cli.lifeline import Lifeline

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Lifeline(int(sys.argv[1])).say({"serves": True})
    time.sleep(3_600)
