"""Removes every orphan: ``python -m broker.devstack.postgres.sweep``, for ``make clean``."""

from broker.devstack.postgres.account import Account
from broker.devstack.postgres.orphans import remove_orphans

if __name__ == "__main__":
    remove_orphans(Account.for_this_process(), limit=None)
