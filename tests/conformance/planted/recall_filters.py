"""The reference with one bug each in what it takes for eligible."""

from dataclasses import replace
from datetime import MAXYEAR, datetime, timedelta
from typing import Any

from providers.conformance.reference import ReferenceMemoryProvider
from providers.folding import folded
from providers.model import (
    Kind,
    MemoryFacet,
    OriginTier,
    Record,
    Sensitivity,
    State,
    Trust,
)
from providers.recall import Eligible, Superseded
from tests.conformance.planted.bug import caught_by

ENDED = "superseded_rejected_expired_forgotten_absent_from_every_arm"
ENDS = "what_a_revision_ends_is_gone_at_once"
EXPIRY = "the_very_moment_of_expiry_is_expired"
AS_OF = "as_of_a_time_is_what_was_in_use_then"
FILTERS = "every_filter_acts_on_every_arm"
TAGS = "tags_and_patterns_filter"


class _Takes(ReferenceMemoryProvider):
    """Takes a head, or what is asked for, for another when it looks whether it is eligible."""

    def _taken(self, record: Record) -> Record:
        return record

    def _asked(self, eligible: Eligible) -> Eligible:
        return eligible

    def _is_eligible(self, record: Record, eligible: Eligible) -> bool:
        return super()._is_eligible(self._taken(record), self._asked(eligible))

    def _counts(self, record: Record, eligible: Eligible) -> bool:
        return super()._counts(self._taken(record), eligible)


def _now(record: Record, **changes: Any) -> Record:
    return replace(record, current=replace(record.current, **changes))


def _facet(record: Record, **changes: Any) -> Record:
    return _now(record, facet=replace(record.current.facet or MemoryFacet(), **changes))


@caught_by(ENDED, ENDS)
class GivesWhatIsForgotten(_Takes):
    def _taken(self, record: Record) -> Record:
        forgotten = record.current.state is State.FORGOTTEN
        return _now(record, state=State.ACTIVE) if forgotten else record


@caught_by(ENDED, ENDS, AS_OF)
class GivesWhatIsSuperseded(_Takes):
    def _taken(self, record: Record) -> Record:
        superseded = record.current.state is State.SUPERSEDED
        return (
            _facet(_now(record, state=State.ACTIVE), invalidate_time=None) if superseded else record
        )


@caught_by(ENDED, ENDS)
class GivesWhatIsRejected(_Takes):
    def _taken(self, record: Record) -> Record:
        rejected = record.current.trust is Trust.REJECTED
        return _now(record, trust=Trust.PENDING) if rejected else record


@caught_by(ENDED)
class TrustsLegacy(_Takes):
    def _taken(self, record: Record) -> Record:
        legacy = record.current.trust is Trust.LEGACY
        return _now(record, trust=Trust.PENDING) if legacy else record


@caught_by(ENDED)
class GivesDecisions(_Takes):
    def _taken(self, record: Record) -> Record:
        decision = record.current.kind is Kind.DECISION
        return _now(record, kind=Kind.MEMORY) if decision else record


@caught_by(ENDED, ENDS, EXPIRY)
class GivesWhatExpired(_Takes):
    def _taken(self, record: Record) -> Record:
        return _facet(record, expire_time=None)


@caught_by(ENDED, AS_OF)
class GivesWhatWasInvalidated(_Takes):
    def _asked(self, eligible: Eligible) -> Eligible:
        valid = eligible.superseded is Superseded.VALID
        return replace(eligible, superseded=Superseded.ALL) if valid else eligible


@caught_by(ENDED, AS_OF)
class KnowsNoHistory(_Takes):
    def _asked(self, eligible: Eligible) -> Eligible:
        return replace(eligible, superseded=Superseded.NONE)


@caught_by(EXPIRY)
class LivesOneMomentLonger(_Takes):
    def _taken(self, record: Record) -> Record:
        end: datetime | None = (record.current.facet or MemoryFacet()).expire_time
        if end is None or end.year == MAXYEAR:
            return record
        return _facet(record, expire_time=end + timedelta(microseconds=1))


@caught_by(EXPIRY)
class ForgetsTheZone(_Takes):
    def _asked(self, eligible: Eligible) -> Eligible:
        utc = datetime.fromisoformat(eligible.at.isoformat()[:26] + "+00:00")
        return replace(eligible, at=utc) if eligible.at.microsecond else eligible


@caught_by(AS_OF)
class KnowsTheFuture(_Takes):
    def _taken(self, record: Record) -> Record:
        return replace(record, create_time=datetime.min.replace(tzinfo=record.create_time.tzinfo))


@caught_by(AS_OF)
class TakesTheUpdateForTheCreation(_Takes):
    def _taken(self, record: Record) -> Record:
        return replace(record, create_time=record.current.create_time)


@caught_by(FILTERS)
class TakesNoLabelForPublic(_Takes):
    def _taken(self, record: Record) -> Record:
        label = (record.current.facet or MemoryFacet()).sensitivity
        return _facet(record, sensitivity=label or Sensitivity.PUBLIC)


@caught_by(FILTERS)
class TakesNoTierForAgent(_Takes):
    def _taken(self, record: Record) -> Record:
        tier = (record.current.facet or MemoryFacet()).origin_tier
        return _facet(record, origin_tier=tier or OriginTier.AGENT)


@caught_by(FILTERS)
class FoldsSubjects(_Takes):
    def _taken(self, record: Record) -> Record:
        subject = (record.current.facet or MemoryFacet()).subject
        return _facet(record, subject=None if subject is None else folded(subject))

    def _asked(self, eligible: Eligible) -> Eligible:
        subject = eligible.subject
        return replace(eligible, subject=None if subject is None else folded(subject))


@caught_by(FILTERS)
class IgnoresTheNamespace(_Takes):
    def _asked(self, eligible: Eligible) -> Eligible:
        return replace(eligible, namespaces=frozenset())


@caught_by(FILTERS)
class TakesWhatCannotBeForNoFilter(_Takes):
    def _asked(self, eligible: Eligible) -> Eligible:
        kept = frozenset(each for each in eligible.namespaces if "\0" not in each)
        return replace(eligible, namespaces=kept)


@caught_by("importance_is_a_floor")
class ComparesImportanceAsText(_Takes):
    def _taken(self, record: Record) -> Record:
        content = record.current.content
        return _now(record, content=replace(content, importance=float(f"{content.importance:.3f}")))


@caught_by(TAGS)
class MindsCaseOfTags(ReferenceMemoryProvider):
    def _is_eligible(self, record: Record, eligible: Eligible) -> bool:
        exact = set(eligible.tags) <= set(record.current.content.tags)
        return exact and super()._is_eligible(record, eligible)


@caught_by(TAGS)
class WantsEveryPattern(ReferenceMemoryProvider):
    def _is_eligible(self, record: Record, eligible: Eligible) -> bool:
        each_alone = (replace(eligible, patterns=(each,)) for each in eligible.patterns)
        every = all(super(WantsEveryPattern, self)._is_eligible(record, one) for one in each_alone)
        return every and super()._is_eligible(record, eligible)


@caught_by(TAGS)
class KnowsMoreWildcards(_Takes):
    def _asked(self, eligible: Eligible) -> Eligible:
        swapped = (each.replace("%", "*").replace("_", "?") for each in eligible.patterns)
        return replace(eligible, patterns=tuple(swapped))


@caught_by(TAGS)
class FindsPatternsAcrossTags(_Takes):
    def _taken(self, record: Record) -> Record:
        content = record.current.content
        both = (*content.tags, " ".join(content.tags))
        return _now(record, content=replace(content, tags=both))
