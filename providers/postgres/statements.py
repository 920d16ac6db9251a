"""The hot statements, read once. Each stands in a file of its own beside this one."""

from importlib.resources import files


def _read(name: str) -> str:
    return files("providers.postgres").joinpath(name).read_text(encoding="utf-8")


LOAD = _read("load.sql")
COMMIT = _read("commit.sql")
CLASSIFY = _read("classify.sql")
REVISIONS = _read("revisions.sql")
NEGOTIATE = _read("negotiate.sql")
