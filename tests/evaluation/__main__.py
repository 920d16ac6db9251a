"""``make eval DATA=<folder> [PROVIDER=redis|cosmos]``: runs the scenario on all its conversations.

A development stack of its own serves it, in a temporary directory. The first conversation is
brought to as many candidates of a context as are allowed. Prints one line for each conversation
and ends non-zero when anything was not as it must be.
"""

import argparse
import asyncio
import secrets
import sys
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from broker.devstack.provider import Provider
from tests.evaluation.conversation import Conversation, ConversationInvalidError, load_folder
from tests.evaluation.plan import Plan
from tests.evaluation.scenario import Report, run
from tests.evaluation.site import Site
from tests.evaluation.stack import StackFailedError, development_site

NEEDED = """\
A folder of conversations is needed: make eval DATA=<folder>.
Each *.json file in it holds one conversation in the form that tests/evaluation/conversation.py
describes (tests/fixtures/conversation.json is one), or samples in the form of LoCoMo."""
MISMATCHES_SHOWN = 20
TABLE_WIDTH = 180
FIGURES = (
    "turns",
    "records",
    "writes",
    "replays",
    "stale",
    "refused",
    "revisions",
    "checked",
    "filler",
    "compiled",
    "proved",
    "listed",
    "mismatches",
    "calls",
)


def main() -> int:
    """Return the exit code: 0 all is well, 1 mismatches, 2 it could not be run."""
    parser = argparse.ArgumentParser(prog="make eval", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--provider", type=Provider, choices=[*Provider], default=Provider.POSTGRES)
    given = parser.parse_args()
    folder = given.folder
    if folder is None:
        print(NEEDED, file=sys.stderr)
        return 2
    try:
        conversations = load_folder(folder)
        with development_site(given.provider) as site:
            plans = [Plan(), *[Plan(candidates=0)] * (len(conversations) - 1)]
            reports = list(map(partial(_run, site), conversations, plans))
    except (ConversationInvalidError, StackFailedError) as error:
        print(error, file=sys.stderr)
        return 2
    Console(width=TABLE_WIDTH).print(_table(reports))
    return _tell_mismatches(reports)


def _run(site: Site, conversation: Conversation, plan: Plan) -> Report:
    print(f"{conversation.title}: {conversation.turns} turns", file=sys.stderr, flush=True)
    return asyncio.run(run(site, f"conversation-{secrets.token_hex(4)}", conversation, plan))


def _table(reports: list[Report]) -> Table:
    table = Table()
    table.add_column("conversation", overflow="ellipsis", no_wrap=True, max_width=20)
    for name in FIGURES:
        table.add_column(name, justify="right")
    table.add_column("calls/s", justify="right")
    for report in reports:
        figures = [report.turns, report.records, report.writes, report.replays, report.stale]
        figures += [report.refused, report.revisions, report.checked, report.filler]
        figures += [report.compiled, report.proved, report.listed, len(report.mismatches)]
        speed = f"{report.calls / report.seconds:.0f}"
        table.add_row(report.title, *map(str, figures), str(report.calls), speed)
    return table


def _tell_mismatches(reports: list[Report]) -> int:
    found = [f"{each.title}: {line}" for each in reports for line in each.mismatches]
    for line in found[:MISMATCHES_SHOWN]:
        print(line, file=sys.stderr)
    if len(found) > MISMATCHES_SHOWN:
        print(f"and {len(found) - MISMATCHES_SHOWN} more", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
