"""Histories on the move: exported, imported elsewhere, exported again (004-82, 004-85, 004-88)."""

from tests.fixtures.decisions import decisions
from tests.fixtures.desk import Desk, desk
from tests.fixtures.record_calls import EXPORT, IMPORT, SUPERSEDE, UPDATE

__all__ = ["desk"]

TENANT_B = {"tenant": "tenant-b"}


async def test_smoke(desk: Desk) -> None:
    a, b = await decisions(desk.stand, desk.project, 2)
    m = await desk.made()
    await desk.changed(UPDATE, m, content="x")
    await desk.changed(SUPERSEDE, a, replacement_record_id=b)
    e = (await desk.done(EXPORT)).bundle
    print(e)
    i = await desk.done(IMPORT, TENANT_B, bundle=e)
    print(i)
    e2 = (await desk.done(EXPORT, TENANT_B)).bundle
    print(e2)
