"""The newcomer's file: written once, edited in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.devstack import playground
from broker.devstack.owner.document import DocumentInvalidError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "playground.yaml"
    assert playground.ensure(path)
    return path


def test_existing_file_is_kept(file: Path) -> None:
    file.write_text("mine")
    assert not playground.ensure(file)
    assert file.read_text() == "mine"


def test_grant_and_revoke_raise_the_membership_revision(file: Path) -> None:
    playground.grant(file, subject="ned", role="owner", tenant="acme", project="atlas")
    playground.grant(file, subject="ned", role="tenant-admin", tenant="globex")
    playground.revoke(file, subject="olga", tenant="acme", project="atlas")
    content = playground.read(file)
    assert content.tenants["acme"].membership_revision == 3
    assert content.tenants["globex"].members == {"ned": "tenant-admin"}
    members = content.tenants["acme"].projects["atlas"].members
    assert members["ned"] == "owner"
    assert "olga" not in members


def test_bad_edit_leaves_the_file_alone(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(DocumentInvalidError):
        playground.grant(file, subject="ned", role="king", tenant="acme")
    with pytest.raises(KeyError):
        playground.revoke(file, subject="ned", tenant="nowhere")
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]
