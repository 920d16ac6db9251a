"""One place turns errors into gRPC statuses."""

import ast

from tests.architecture import sources

ABORTS = {"abort", "abort_with_status"}


def test_only_one_module_of_the_server_aborts_calls() -> None:
    aborting = {name for name in sources.python("broker", "providers") if _aborts(name)}
    assert len(aborting) <= 1, f"only the error interceptor may abort a call: {sorted(aborting)}"
    assert all(name.startswith("broker/server/") for name in aborting)


def _aborts(name: str) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ABORTS
        and not _is_transport(node.func.value)
        for node in ast.walk(ast.parse(sources.text(name) or ""))
    )


def _is_transport(node: ast.expr) -> bool:
    """Tell whether it is a connection of asyncio that is aborted, which is no call."""
    if isinstance(node, ast.Name):
        return node.id == "transport"
    return isinstance(node, ast.Attribute) and node.attr == "transport"
