"""``IMemoryProvider``: the contract between the broker and a store.

Each clause is numbered and MUST hold; each has a law in ``providers/conformance/laws`` or names
what brings it. Where nothing is promised it says so.

General clauses

- G-1. Every method refuses identifiers it was not made for only by finding nothing: keys are
  compared byte for byte,
  case matters, and ``% _ | : / .`` in an identifier mean themselves.
- G-2. Every key begins with (tenant_id, project_id): equal ids of other tenants and projects are
  other things, and a key
  that is a prefix of another reaches nothing of it. The one exception is not part of this class:
  ``deliveries.UnscopedEffects``, which the native adapter has, finds an effect by (tenant_id,
  receipt_id), issuer and subject.
- G-3. Every method but ``negotiate`` and ``close`` checks the resource marker in the
  same round trip as its
  first read and raises ResourceMismatchError when it is absent or not the configured one. Where a
  store keeps it too far away for that, it was read at most 30 s before.
- G-4. ``timeout`` is in seconds and bounds the whole call, waiting for a connection included. When
  it passes before a
  write was sent the call raises ProviderTimeoutError or ProviderUnavailableError; after that
  OutcomeUnknownError. ``commit``, ``index``, ``acquire``, ``acknowledge`` and ``release`` write.
- G-5. Drivers' errors leave only as the types of ``errors.py``, told apart by code and never by
  text, cause chained.
- G-6. A method of a capability that is not declared raises CapabilityMissingError and touches
  nothing.
- G-7. A document that fails its check raises StoredDataInvalidError; it is never skipped.
- G-8. Cancelling a read leaves no transaction open and no connection in doubt in the pool.
  Cancelling a write closes
  its connection; whether the write happened is then unknown.
- G-9. After ``close`` every method raises ProviderClosedError; ``close`` may be called twice.
- G-10. Text comes back exactly as it was given, every code point but NUL and surrogates; a commit
  of those, and a release with such a code, raises WriteSetInvalidError before anything is sent; a
  read or a lease naming them finds nothing.
- G-11. Where a clause says one round trip, a store that cannot do it in one takes at most as many
  as its harness declares.
"""

from abc import ABC, abstractmethod

from providers.capabilities import Capability
from providers.deliveries import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    EffectFound,
    EffectRequest,
    LeaseRequest,
    PendingEffects,
    PendingEffectsRequest,
)
from providers.errors import CapabilityMissingError
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound
from providers.model import WriteSet
from providers.recall import (
    IndexRequest,
    Recalled,
    RecallRequest,
    TaggedRequest,
    Unindexed,
    UnindexedRequest,
)
from providers.requests import (
    Candidates,
    CandidatesRequest,
    CommitOutcome,
    Loaded,
    LoadRequest,
    Negotiated,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchRequest,
)


class IMemoryProvider(ABC):
    """One store of records. Instances are safe for concurrent calls on one event loop.

    Attributes:
        commits_unseen: Whether ``commit`` refuses, with nothing applied, all that a ``load`` before
            it would have been refused for: then none is needed where nothing loaded is decided on.
    """

    commits_unseen: bool = False

    @abstractmethod
    async def negotiate(self, *, timeout: float) -> Negotiated:
        """Read the live resource and say what it can do.

        - N-1. Reads the live resource on every call; nothing is remembered.
        - N-2. Returns the marker's resource id and generation; raises ResourceMismatchError when
          the marker is absent or
          is not the configured one.
        - N-3. Raises NegotiationRefusedError when the resource is not fit: wrong schema, wrong
          name, too many rights.
        - N-4. Provisions nothing.
        - N-5. Every capability that is not returned has a reason in ``absent``.
        """

    @abstractmethod
    async def ready(self, *, timeout: float) -> None:
        """Return when the store answers; raise otherwise.

        - R-1. Raises ProviderUnavailableError or ProviderTimeoutError within ``timeout``, also when
          the store is frozen.
        - R-2. Recovers by itself once the store answers again.
        - R-3. Raises ResourceMismatchError when the marker is absent or not the configured one:
          every call would be refused then.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release every connection. See G-9."""

    @abstractmethod
    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """Return everything asked for, in one round trip and of one snapshot.

        - L-1. One round trip, whatever is asked for; where a store cannot walk, one more for each
          further link of the chain.
        - L-2. All of one snapshot: a receipt is never seen without the heads it wrote.
        - L-3. What is absent is left out; no error tells it.
        - L-4. The chain starts at ``chain_from``, follows superseded-by links inside the project,
          ends at the first record
          without a link, at a missing one, or at the first repetition (which is included), and
          holds at most 66 links.
        - L-5. A commit whose outcome was returned before the load began is seen by it.
        """

    @abstractmethod
    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        """Apply the whole write set or nothing.

        - C-1. All or nothing, whatever fails and whoever dies.
        - C-2. Every expected revision is compared with the head as it is when the write happens; of
          concurrent commits
          expecting one revision exactly one is applied.
        - C-3. When several refusals hold the first of this list is returned: Replayed or
          IdempotencyReused; Tombstoned;
          AlreadyExists or ClaimTaken; GraphConflict or Contended; StaleRevision.
        - C-4. A receipt key that holds a receipt gives Replayed when method and fingerprint are
          equal, IdempotencyReused
          otherwise; for ever, also after a restart.
        - C-5. A refused commit leaves nothing behind: its receipt key stays free.
        - C-6. StaleRevision tells the revision current at the time of the refusal.
        - C-7. Committed is returned only when the write is durable, where the resource declares
          durability.
        - C-8. Revisions and receipts never change afterwards; a record's chain has no gap and each
          link fits: where the first new revision does not name the head it follows, the answer is
          StaleRevision.
        - C-9. The driver never sends a commit twice: one request that writes on the wire for each
          call. A store that is told what it was found to hold may refuse because others wrote
          meanwhile; then it is read again, and written to again only where nothing else speaks
          against it.
        - C-10. A claim is taken only if the key holds what ``held_by`` says; a key with a tombstone
          gives Tombstoned.
          A release of a key that another record holds changes nothing.
        - C-11. ``must_be_absent`` and ``claims`` both prove that there is no tombstone at the time
          of the write. Commits at once that prove it of a key each are all applied.
        - C-12. The graph and transfer counters advance by one each where expected; the transfer
          counter also, by one in all, with a set that puts tombstones.
        - C-13. An effect is applied only if the stream's counter is ``sequence - 1``, and sets it
          to ``sequence``; else
          Contended.
        - C-14. Deadlocks and serialisation failures are retried inside or returned as Contended,
          never raised.
        - C-15. A write set that breaks the limits below or its own rules raises
          WriteSetInvalidError before anything is sent: at most 100 heads, 500 revisions of
          history beside them, 100 claims, releases, absences and tombstones together, 4 MiB of
          text in UTF-8. Without history, which only imports have, more than two heads together
          with more than 384 KiB or 192 tags raise WriteSetTooLargeError before anything is sent;
          their texts, tags and facets are measured as JSON, each string with its quotes. Where a
          store takes less in one piece, as its harness declares, more than that raises
          WriteSetTooLargeError before anything is written.
        - C-16. Receipts of another project, and of another actor, never meet: the key's scope is
          (tenant, project, actor).
        - C-17. An effect's receipt id is new in its project: one that exists gives AlreadyExists
          with the receipt id, after the records' own ids and before any claim, whatever the stream
          stands at.
        - C-18. Of several ids that exist the first is told: records in the order of ``heads``, then
          revisions in the order of ``history``, then of ``heads``. History is kept as it is given:
          links, any trust, and no actor and no change kind where there is none. Of two commits at
          the same moment, one of them with history, the same revision id in both may be missed.
        """

    @abstractmethod
    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        """Return a page of history, newest first.

        - V-1. The record must be the agent's and not forgotten, else ``found`` is false and no
          revision is read.
        - V-2. Pages follow each other without gap or repetition, also while the record is being
          updated.
        - V-3. One round trip.
        - V-4. With ``brief`` a revision is as S-8 says.
        - V-5. With ``bytes_max`` the page is no larger than S-9 says.
        """

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        """Return a page of heads in search order.

        - S-1. Every filter acts inside the query, before any limit: what another agent, project or
          tenant has never costs a place on the page, and agents compare byte for byte.
        - S-2. Order is update time descending, then record id ascending, byte for byte; heads that
          do not change are neither skipped nor repeated across pages, whatever others do.
        - S-3. ``text`` is found where it stands, whole, in the type, the title, the content or one
          tag; in nothing else, and in no two of them together. A tag is had where one is equal.
          Both are compared as ``folding.folded`` gives them: case and composition do not count,
          and every character means itself: none is a wildcard, a space or an escape.
        - S-4. Forgotten records are never returned, also where their state is asked for.
        - S-5. Importance is compared as a number, both bounds included; ``updated_from`` is
          included and ``updated_before`` is not.
        - S-6. ``more`` is true exactly when a later page would hold something.
        - S-7. One round trip. Where a store has nothing to find a text or a filter by but a walk
          in order, one for each stretch of at least 500 heads that the walk takes.
        - S-8. With ``brief`` what is returned holds the first 256 code points of the content, no
          rationale and no metadata in its facet. All else is whole, and what is found is the same.
        - S-9. With ``bytes_max`` the page ends before the first that would make it larger; never
          before the first of all, and ``more`` is true then. What counts is the UTF-8 of type,
          title, content, rationale, tags and reason, and of the facet as the store writes it in
          JSON.
        """
        raise CapabilityMissingError(Capability.SEARCH)

    async def candidates(self, request: CandidatesRequest, *, timeout: float) -> Candidates:
        """Return what may enter the context of one agent's run, most important first.

        Expiry, delivery policy and sensitivity are the caller's to judge, and filter nothing here.

        - K-1. Decisions and session contexts that are active and approved: a decision of the
          project, whosever and of whatever type; a session context of this agent whose source run
          is this run.
        - K-2. Active memories of this agent with trust pending or approved.
        - K-3. Active memories of other agents, where approved and one tag is ``cross-team``, whole,
          in capital or small letters of ASCII. Tags are not folded for this (S-3): nobody shares
          by a tag that only looks like it.
        - K-4. Order is decision, memory, session context; then importance descending as a number,
          update time descending, record id ascending byte for byte. The first ``limit`` come.
        - K-5. Of these as many come, from the first on, as hold ``bytes_max`` together: the UTF-8
          of type, title, content, rationale, tags and reason. None is passed over, and the first
          comes always. The store counts before it sends. ``truncated_bytes`` is true exactly when
          one was held back by this.
        - K-6. One round trip, of one snapshot.
        """
        raise CapabilityMissingError(Capability.COMPOSE)

    async def recall(self, request: RecallRequest, *, timeout: float) -> Recalled:
        """Find memories by words and by a vector, with the statistics that rank them.

        - Q-1. Eligible is a memory of this agent, with trust pending or approved, that is active
          or, as ``superseded`` says, superseded; created at ``at`` or before, not invalidated and
          not expired then: the very moment of expiry counts as expired. With ``Superseded.ALL`` the
          time of invalidation filters nothing.
        - Q-2. Every filter acts on every arm, before any limit. A memory without a tier counts as
          external, without a sensitivity as internal. What others have costs no place.
        - Q-3. ``documents``, ``length_total``, ``frequencies`` and ``unindexed`` are of all
          memories of this agent with trust pending or approved that are active or, where superseded
          ones are asked for, superseded: whatever else the request filters.
        - Q-4. The terms, by frequency ascending, then by themselves byte for byte, drive as long as
          their frequencies together are at most 2,000; the first that occurs at all always drives.
          A match is an eligible memory with an entry that holds a driving term.
        - Q-5. There are at most 10,000 matches: of more, those updated last, then by record id.
          Their order means nothing.
        - Q-6. ``nearest`` are the eligible memories with a vector of the same model and dimension,
          by cosine descending, then by record id; the first ``nearest_max`` come. The cosine is
          exact to 1e-4. Without the capability of vectors a request with one is refused (G-6).
        - Q-7. A term is compared byte for byte and means itself; one that occurs nowhere has
          frequency 0 and does not drive.
        - Q-8. RecallScopeTooLargeError where the agent has more such memories (Q-3), with an entry
          or without, than the resource negotiated. Nothing is left out in silence.
        - Q-9. All of one snapshot, where the store can; a commit whose outcome was returned before
          is seen, its entry too. One round trip; where a store walks, one for each stretch.
        - Q-10. An entry is replaced with the head it is put with, whole: an old vector never
          answers for new text. A head put without one keeps its own. What is no memory has none.
          Where a store takes less in one piece (C-15), a commit that fits only without its new
          entries leaves them out: those heads have none then, which ``unindexed`` tells.
        """
        raise CapabilityMissingError(Capability.RECALL)

    async def tagged(self, request: TaggedRequest, *, timeout: float) -> SearchPage:
        """Return eligible memories (Q-1, Q-2), most important first.

        - B-1. Order is importance descending as a number, update time descending, record id
          ascending byte for byte; sorted before the limit. ``more`` is true exactly when something
          was cut.
        - B-2. In a pattern ``*`` and ``?`` are the only wildcards; every other character means
          itself.
        - B-3. One round trip; where a store walks, one for each stretch.
        """
        raise CapabilityMissingError(Capability.RECALL)

    async def unindexed(self, request: UnindexedRequest, *, timeout: float) -> Unindexed:
        """Return memories of a project, of any state but forgotten, that have no entry.

        - I-1. By record id ascending byte for byte, after ``after``; with ``vector_model`` also
          those whose entry has no vector of that model.
        """
        raise CapabilityMissingError(Capability.RECALL)

    async def index(self, request: IndexRequest, *, timeout: float) -> int:
        """Put entries for heads that are there, and return how many were put.

        - I-2. An entry is put only where a memory's head still is the revision named; no revision,
          time or counter changes by it. It may be repeated. One that breaks a limit raises
          WriteSetInvalidError (C-15), and none is put.
        """
        raise CapabilityMissingError(Capability.RECALL)

    async def export(self, request: ExportRequest, *, timeout: float) -> Export:
        """Return whole chains of one agent, of one snapshot.

        - X-1. Every memory and decision of the agent that is not forgotten, with all its revisions,
          oldest first; ordered by kind, then by record id byte for byte. All of one snapshot, so
          that nothing changed gives the same answer again.
        - X-2. Past a limit nothing is returned and ``exceeded`` names it: of several the first of
          records, revisions, bytes. The store counts before it sends; bytes are a coarse bound: the
          UTF-8 of type, title, content, rationale, tags and reason of every revision returned.
        - X-3. ``record_ids`` names what to begin with: these records and whatever a revision of one
          of them names as superseded-by, and so on, each once. What is absent, of another agent or
          project, or not to be exported (X-1) is left out, and so are its links.
        - X-4. Numbers from 1 without a gap, links that fit, and a head that equals its newest
          revision, or StoredDataInvalidError.
        - X-5. One round trip.
        """
        raise CapabilityMissingError(Capability.REVISIONS)

    async def tombstones(self, request: KeyQuery, *, timeout: float) -> KeysFound:
        """Return the tombstones among keys, by key.

        Part of the capability that moves histories, as ``export`` is: an import alone asks for
        tombstones in such numbers, and who has no history to bring has no use for it. A write is
        guarded without it (C-11).

        - T-1. A tombstone whose commit advanced the transfer counter before it was read is seen.
        - T-2. Each tombstone as it was put, sorted by key byte for byte; a key that is free or held
          by a record is left out.
        - T-3. One round trip.
        """
        raise CapabilityMissingError(Capability.REVISIONS)

    async def acquire(self, request: AcquireRequest, *, timeout: float) -> Acquired:
        """Take the delivery lease of an effect.

        - D-1. At most one live lease for an effect: none is given while it is delivered, or leased
          and the lease not expired. Of callers at once one gets it. Time is the store's own, looked
          at after any wait.
        - D-2. No lease while an earlier effect of the same (tenant, project, run) is undelivered.
          Other runs do not count.
        - D-3. An expired lease can be taken by another. Every lease has a new random token, and
          with it the ones before are worth nothing.
        """
        raise CapabilityMissingError(Capability.DELIVERY)

    async def acknowledge(
        self, request: LeaseRequest, *, acknowledgement: Acknowledgement, timeout: float
    ) -> bool:
        """Mark an effect delivered, and keep what the events service answered.

        - D-4. True only for the holder of the current token while the lease has not expired and the
          effect is undelivered; judged by the store's own time, after any wait.
        - D-8. A delivered effect stays delivered, with the acknowledgement that it got; ``effect``
          and ``acquire`` return it as it was given. Its last code is gone.
        """
        raise CapabilityMissingError(Capability.DELIVERY)

    async def release(self, request: LeaseRequest, *, code: str, timeout: float) -> bool:
        """Give a lease back and keep the delivery code.

        - D-5. True only for the holder of the current token of an undelivered effect, expired or
          not; the code is then the effect's last code, and it can be leased at once. A code is
          1-256 characters, or WriteSetInvalidError.
        """
        raise CapabilityMissingError(Capability.DELIVERY)

    async def effect(self, request: EffectRequest, *, timeout: float) -> EffectFound:
        """Return one effect.

        - D-6. An effect of another run, project or tenant is not found, by this method and by the
          others of its kind: no lease, false, not on a page.
        """
        raise CapabilityMissingError(Capability.DELIVERY)

    async def pending_effects(
        self, request: PendingEffectsRequest, *, timeout: float
    ) -> PendingEffects:
        """Return undelivered effects of a run, leased or not.

        - D-7. In stream order, none skipped; ``more`` is true exactly when a later page would hold
          something.
        - D-9. One round trip; so is every call that delivers.
        """
        raise CapabilityMissingError(Capability.DELIVERY)
