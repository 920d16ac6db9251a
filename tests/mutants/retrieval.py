"""Bugs in terms and ranks, and the tests that have to notice them."""

from tests.mutants.mutant import Mutant

TERMS = "tests/unit/retrieval/test_terms.py"
RANKING = "tests/unit/retrieval/test_ranking.py"
NEIGHBOURS = "tests/unit/retrieval/test_neighbours.py"
RECOLLECTIONS = "tests/unit/services/test_recollections.py"

MUTANTS = (
    Mutant(
        name="accents count",
        file="broker/retrieval/spelling.py",
        right='_DROPPED.sub("", unicodedata.normalize("NFKD", text))',
        wrong='unicodedata.normalize("NFKD", text)',
        tests=(TERMS,),
    ),
    Mutant(
        name="a query asks for its stop words",
        file="broker/retrieval/tokens.py",
        right="    if asked and word in STOP_WORDS:\n",
        wrong="    if not asked and word in STOP_WORDS:\n",
        tests=(TERMS,),
    ),
    Mutant(
        name="went is not found by go",
        file="broker/retrieval/tokens.py",
        right="        word = BASES[word]\n",
        wrong="        pass\n",
        tests=(TERMS,),
    ),
    Mutant(
        name="one letter and a number are two words, of ASCII alone",
        file="broker/retrieval/segments.py",
        right='r"([A-Za-z]{2,}+)([0-9]++)"',
        wrong='r"([A-Za-z]++)([0-9]++)"',
        tests=(TERMS,),
    ),
    Mutant(
        name="a number parts no words, of ASCII alone",
        file="broker/retrieval/segments.py",
        right='r"(?<=[a-z0-9])(?=[A-Z])',
        wrong='r"(?<=[a-z])(?=[A-Z])',
        tests=(TERMS,),
    ),
    Mutant(
        name="what the vectors did not bring is not near at all",
        file="broker/retrieval/scoring.py",
        right="similarities.get(record_id, last)",
        wrong="similarities.get(record_id, 0.0)",
        tests=(RANKING,),
    ),
    Mutant(
        name="what is told again is told",
        file="broker/retrieval/ranking.py",
        right="repetition is Repetition.NONE and self._room.take(record)",
        wrong="self._room.take(record)",
        tests=(RANKING,),
    ),
    Mutant(
        name="exactly 0.8 of common terms is new",
        file="broker/retrieval/repeats.py",
        right="jaccard(one, other) >= NEAR_DUPLICATE",
        wrong="jaccard(one, other) > NEAR_DUPLICATE",
        tests=(RANKING,),
    ),
    Mutant(
        name="what is nearly told takes a place of its subject",
        file="broker/retrieval/ranking.py",
        right="            if repetition is Repetition.NEAR:\n",
        wrong="            if repetition is Repetition.NEAR and self._room.take(record):\n",
        tests=(RANKING,),
    ),
    Mutant(
        name="a text is folded for every other that is near",
        file="broker/retrieval/repeats.py",
        right="    @cached_property\n",
        wrong="    @property\n",
        tests=(RANKING,),
    ),
    Mutant(
        name="what a memory became between the trips of a recall is told",
        file="broker/services/recollections.py",
        right="[each for each in heads if is_eligible(each, asked.eligible)]",
        wrong="list(heads)",
        tests=(RECOLLECTIONS,),
    ),
    Mutant(
        name="long texts are read on the loop",
        file="broker/services/recollections.py",
        right="order.records[soon:]), max(ends, default=0))",
        wrong="order.records[soon:]), 0)",
        tests=(RECOLLECTIONS,),
    ),
    Mutant(
        name="the first texts are not read by themselves",
        file="broker/services/recollections.py",
        right="soon = bisect_right(ends, LONG)",
        wrong="soon = bisect_right(ends, LONG if max(ends, default=0) <= LONG else 0)",
        tests=(RECOLLECTIONS,),
    ),
    Mutant(
        name="of equals where the order is cut none is left",
        file="broker/retrieval/scoring.py",
        right="if score >= least",
        wrong="if score > least",
        tests=(RANKING,),
    ),
    Mutant(
        name="a place is won by origin",
        file="broker/retrieval/ranking.py",
        right="Order([records[record_id] for record_id in ordered(scores)], scores)",
        wrong="Order(_by_tier([records[each] for each in ordered(scores)]), scores)",
        tests=(RANKING,),
    ),
    Mutant(
        name="all neighbours lend",
        file="broker/retrieval/neighbours.py",
        right="max(_offers(row, excess, place), default=0.0)",
        wrong="sum(_offers(row, excess, place))",
        tests=(NEIGHBOURS,),
    ),
    Mutant(
        name="what was stored long after is a neighbour",
        file="broker/retrieval/neighbours.py",
        right="                if apart <= APART_MAX:\n",
        wrong="                if apart <= APART_MAX * 2:\n",
        tests=(NEIGHBOURS,),
    ),
)
