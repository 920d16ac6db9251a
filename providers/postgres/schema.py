"""The tables of schema ``memory``, as SQLAlchemy Core metadata.

Every key and every index but ``effects_unscoped`` begins with (tenant_id, project_id). Identifiers
compare byte for byte: their columns are ``text COLLATE "C"`` (004-48). There are no foreign keys:
one statement writes a head and its revisions together, so that a second check would only cost time.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TextClause,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, DOMAIN, JSON
from sqlalchemy.schema import PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.types import TypeEngine, UserDefinedType

from providers.model import ChangeKind, Kind, State, Trust

SCHEMA = "memory"
REVISION = "0007"
"""The migration this code is written for. A test compares it with the newest migration."""

METADATA = MetaData(schema=SCHEMA)

_ACTIVE = "state NOT IN ('pending', 'archived', 'superseded', 'rejected', 'promoted', 'forgotten')"
_APPROVED = "trust NOT IN ('pending', 'rejected', 'legacy')"


def _domain(name: str, base: TypeEngine[Any], rule: str, check: str) -> DOMAIN:
    return DOMAIN(
        name,
        base,
        constraint_name=f"{name}_{rule}",
        check=check,
        schema=SCHEMA,
        metadata=METADATA,
    )


def _one_of(name: str, values: type[StrEnum]) -> DOMAIN:
    listed = ", ".join(f"'{value}'" for value in values)
    return _domain(name, Text(), "known", f"VALUE IN ({listed})")


# What a commit writes and one column can be held to. A session keeps the check of a domain ready;
# that of a table is read and compiled by each statement that writes (ADR 0037).
_KIND = _one_of("record_kind", Kind)
_STATE = _one_of("record_state", State)
_TRUST = _one_of("record_trust", Trust)
_CHANGE_KIND = _one_of("change_kind", ChangeKind)
# 64 hex digits. A pattern that counts them takes ten times as long.
_HEX = "octet_length(VALUE) = 64 AND VALUE !~ '[^0-9a-f]'"
_FINGERPRINT = _domain("fingerprint", Text(), "form", _HEX)
_UNIT = _domain("unit", Double(), "range", "VALUE BETWEEN 0 AND 1")
_ORDINAL = _domain("ordinal", Integer(), "range", "VALUE >= 1")


def _identifier(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Text(collation="C"), nullable=null)


def _text(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Text(), nullable=null)


def _identifiers(name: str, *, null: bool = False) -> Column[Any]:
    return Column(name, ARRAY(Text(collation="C")), nullable=null)


def _integer(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, Integer(), nullable=null)


def _time(name: str, *, null: bool = False) -> Column[datetime]:
    return Column(name, DateTime(timezone=True), nullable=null)


def _scope() -> tuple[Column[str], Column[str]]:
    return _identifier("tenant_id"), _identifier("project_id")


def _snapshot() -> tuple[Column[Any], ...]:
    """Columns that a head and a revision have in common."""
    return (
        _identifier("record_id"),
        Column("revision", _ORDINAL, nullable=False),
        _identifier("revision_id"),
        _identifier("previous_revision_id", null=True),
        _identifier("agent_id"),
        Column("kind", _KIND, nullable=False),
        _text("type"),
        _text("title", null=True),
        _text("content"),
        _text("rationale", null=True),
        Column("importance", _UNIT, nullable=False),
        Column("tags", ARRAY(Text()), nullable=False),
        Column("facet", JSON(), nullable=True),
        Column("state", _STATE, nullable=False),
        Column("trust", _TRUST, nullable=False),
        _identifier("source_run_id", null=True),
        _identifier("source_session_id", null=True),
        _identifier("promoted_decision_id", null=True),
        _identifier("superseded_by_record_id", null=True),
        _text("reason", null=True),
        Column("change_kind", _CHANGE_KIND, nullable=True),
        Column("actor_fingerprint", _FINGERPRINT, nullable=True),
    )


def _linked(table: str) -> CheckConstraint:
    return CheckConstraint(
        "(revision = 1) = (previous_revision_id IS NULL)", name=f"{table}_first_has_no_link"
    )


def _searched(collation: str, *names: str) -> list[TextClause]:
    return [text(f'{name} COLLATE "{collation}"') for name in names]


def _entering(name: str, condition: str, *scope: str) -> Index:
    """What one part of the context candidates is read from, most important first."""
    *scoped, last = (f"{each} COLLATE {SCHEMA}.candidate_order" for each in (*scope, "record_id"))
    keys = (*scoped, "importance DESC", "update_time DESC", last)
    return Index(name, *map(text, keys), postgresql_where=text(condition))


def _order(name: str, *scope: str) -> Index:
    """What a page of heads of this scope is read from."""
    keys = (*_searched("POSIX", *scope), text("update_time DESC"), *_searched("POSIX", "record_id"))
    return Index(name, *keys)


RESOURCE = Table(
    "resource",
    METADATA,
    Column("single", Boolean(), nullable=False, server_default=text("true")),
    _identifier("resource_id"),
    Column("generation", BigInteger(), nullable=False),
    _time("create_time"),
    PrimaryKeyConstraint("single", name="resource_pkey"),
    CheckConstraint("single", name="resource_is_single"),
    CheckConstraint("generation >= 1", name="resource_generation_range"),
)
"""The marker: one row, written once by the operator."""

RECORDS = Table(
    "records",
    METADATA,
    *_scope(),
    *_snapshot(),
    _time("create_time"),
    _time("update_time"),
    _identifier("search_text"),
    PrimaryKeyConstraint("tenant_id", "project_id", "record_id", name="records_pkey"),
    _linked("records"),
    _order("records_agent_order", "tenant_id", "project_id", "agent_id"),
    _order("records_project_order", "tenant_id", "project_id"),
    Index(
        "records_search_text",
        *_searched("ucs_basic", "tenant_id", "project_id", "agent_id"),
        text("search_text memory.gin_trgm_ops"),
        postgresql_using="gin",
        postgresql_with={"gin_pending_list_limit": 512},
    ),
    _entering(
        "records_decision_candidates",
        f"kind = 'decision' AND {_ACTIVE} AND {_APPROVED}",
        *("tenant_id", "project_id"),
    ),
    _entering(
        "records_memory_candidates",
        f"kind = 'memory' AND {_ACTIVE} AND trust NOT IN ('rejected', 'legacy')",
        *("tenant_id", "project_id", "agent_id"),
    ),
    _entering(
        "records_shared_candidates",
        f"(kind = 'memory' AND {_ACTIVE} AND {_APPROVED}"
        " AND strpos(search_text, U&'\\2001cross-team\\2001') > 0) IS TRUE",
        *("tenant_id", "project_id"),
    ),
    _entering(
        "records_session_candidates",
        f"kind = 'session_context' AND {_ACTIVE} AND {_APPROVED}",
        *("tenant_id", "project_id", "agent_id", "source_run_id"),
    ),
)
"""Heads: a copy of the newest revision, when the first one was written, and what is searched.

``search_text`` is made by ``providers.folding``. What a search is read from holds identifiers under
other collations than the columns have, ones that sort the same. A condition fits only an index of
its own collation: so, whatever the statistics say, no lookup by key is planned as a walk in search
order, and no search for a text as a walk through its scope.

Context candidates have a collation of their own, ``memory.candidate_order``, which is C as well; a
migration makes it. Each of their four indexes holds one part and nothing else, in order. ``IS
TRUE`` keeps what is asked of the shared memories from fitting the index of all memories, which
would be walked through where no agent is named.
"""

REVISIONS = Table(
    "revisions",
    METADATA,
    *_scope(),
    *_snapshot(),
    _time("create_time"),
    PrimaryKeyConstraint("tenant_id", "project_id", "record_id", "revision", name="revisions_pkey"),
    UniqueConstraint("tenant_id", "project_id", "revision_id", name="revisions_revision_id_key"),
    _linked("revisions"),
)

RECEIPTS = Table(
    "receipts",
    METADATA,
    *_scope(),
    Column("actor_fingerprint", _FINGERPRINT, nullable=False),
    _identifier("idempotency_key"),
    _text("method"),
    Column("fingerprint", _FINGERPRINT, nullable=False),
    Column("refs", JSON(), nullable=False),
    _identifier("effect_id", null=True),
    Column("outcome", JSON(), nullable=False),
    _time("create_time"),
    PrimaryKeyConstraint(
        "tenant_id", "project_id", "actor_fingerprint", "idempotency_key", name="receipts_pkey"
    ),
)

COUNTERS = Table(
    "counters",
    METADATA,
    *_scope(),
    _identifier("name"),
    Column("value", BigInteger(), nullable=False),
    PrimaryKeyConstraint("tenant_id", "project_id", "name", name="counters_pkey"),
    CheckConstraint("value >= 1", name="counters_value_range"),
)
"""``graph``, ``transfer``, and ``stream/<run>``; a row that is not there counts as 0."""

CLAIMS = Table(
    "claims",
    METADATA,
    *_scope(),
    _identifier("key"),
    _identifier("record_id", null=True),
    _text("tombstone_kind", null=True),
    _time("tombstone_time", null=True),
    PrimaryKeyConstraint("tenant_id", "project_id", "key", name="claims_pkey"),
    CheckConstraint("num_nonnulls(record_id, tombstone_kind) <= 1", name="claims_one_holder"),
    CheckConstraint(
        "(tombstone_kind IS NULL) = (tombstone_time IS NULL)", name="claims_tombstone_whole"
    ),
)
"""What keys hold. A row is the key's lock as well, so it stays when the key is free (both null)."""

EFFECTS = Table(
    "effects",
    METADATA,
    *_scope(),
    _identifier("run_id"),
    Column("sequence", BigInteger(), nullable=False),
    _identifier("receipt_id"),
    Column("receipt", JSON(), nullable=False),
    _time("accept_time"),
    Column("delivered", Boolean(), nullable=False, server_default=text("false")),
    _text("lease_token", null=True),
    _time("leased_until", null=True),
    _text("last_code", null=True),
    _identifier("fact_id", null=True),
    Column("fact_sequence", BigInteger(), nullable=True),
    PrimaryKeyConstraint("tenant_id", "project_id", "run_id", "sequence", name="effects_pkey"),
    UniqueConstraint("tenant_id", "project_id", "receipt_id", name="effects_receipt_id_key"),
    CheckConstraint("sequence >= 1", name="effects_sequence_range"),
    CheckConstraint(
        "(fact_id IS NULL) = (fact_sequence IS NULL) AND (fact_id IS NULL OR delivered)",
        name="effects_acknowledgement_whole",
    ),
    CheckConstraint("fact_sequence >= 1", name="effects_fact_sequence_range"),
    Index(
        "effects_pending",
        *_searched("POSIX", "tenant_id", "project_id", "run_id"),
        text("sequence"),
        postgresql_where=text("NOT delivered"),
    ),
    Index("effects_unscoped", *_searched("ucs_basic", "tenant_id", "receipt_id")),
)
"""Accepted effects. Only the last six columns ever change: where the delivery stands, and the
acknowledgement (which an effect that was marked delivered before there was one lacks).

The indexes are under other collations for the reason that those of the records are: each serves
one look-up, whatever the statistics say. ``effects_pending`` finds what is to be delivered without
a walk through what is delivered; ``effects_unscoped`` serves ``UnscopedEffects`` alone, and has no
project in it.
"""


class _Vector(UserDefinedType[bytes]):
    """What pgvector keeps; where it is not there the numbers are kept as ``real[]``."""

    def get_col_spec(self, **_: Any) -> str:
        return f"{SCHEMA}.vector"


RECALL_ENTRIES = Table(
    "recall_entries",
    METADATA,
    *_scope(),
    _identifier("record_id"),
    _identifier("agent_id"),
    *(Column(name, Boolean(), nullable=False) for name in ("live", "replaced", "forgotten")),
    _time("create_time"),
    _time("update_time"),
    Column("importance", Double(), nullable=False),
    _time("expire_time", null=True),
    _time("invalidate_time", null=True),
    _identifier("namespace"),
    _text("memory_kind", null=True),
    _identifier("subject", null=True),
    _identifier("epoch", null=True),
    _text("sensitivity", null=True),
    _text("origin_tier", null=True),
    _identifiers("tags"),
    _integer("length", null=True),
    Column("vector_id", Uuid(), nullable=True),
    _identifier("vector_model", null=True),
    _integer("vector_dimension", null=True),
    _identifiers("terms", null=True),
    Column("counts", ARRAY(Integer()), nullable=True),
    PrimaryKeyConstraint("tenant_id", "project_id", "record_id", name="recall_entries_pkey"),
    CheckConstraint("num_nulls(length, terms, counts) IN (0, 3)", name="recall_entries_whole"),
    CheckConstraint(
        "num_nulls(vector_id, vector_model, vector_dimension) IN (0, 3)",
        name="recall_entries_vector_whole",
    ),
    Index("recall_entries_scope", *_searched("POSIX", "tenant_id", "project_id", "agent_id")),
    Index(
        "recall_entries_terms",
        *_searched("ucs_basic", "tenant_id", "project_id", "agent_id"),
        "terms",
        postgresql_using="gin",
        postgresql_with={"gin_pending_list_limit": 64},
    ),
    Index(
        "recall_entries_bare",
        *_searched("POSIX", "tenant_id", "project_id", "record_id"),
        postgresql_where=text("length IS NULL AND NOT forgotten"),
    ),
)
"""What memories are recalled by: one row for each, written with its head, in which ``length`` and
``terms`` are null until there is an entry. ``terms`` is sorted, and ``counts`` in its order.

It holds what recall filters by as well, so that no recall looks at a head. A change of state writes
no index anew, as it would in the table of heads, whose indexes hold the time of each update.
``live`` is active, ``replaced`` superseded, both with trust pending or approved.
"""

RECALL_VECTORS = Table(
    "recall_vectors",
    METADATA,
    *_scope(),
    _identifier("record_id"),
    Column("vector_id", Uuid(), nullable=False),
    _identifier("agent_id"),
    _identifier("model"),
    _integer("dimension"),
    Column("embedding", _Vector(), nullable=False),
    PrimaryKeyConstraint(
        "tenant_id", "project_id", "record_id", "vector_id", name="recall_vectors_pkey"
    ),
    Index(
        "recall_vectors_scope",
        *_searched("POSIX", "tenant_id", "project_id", "agent_id", "model"),
        text("dimension"),
    ),
)
"""Vectors, never changed: a new one has a new id. Only the one that its entry names counts, so that
an old one answers nobody, whatever was written at the same moment.
"""
