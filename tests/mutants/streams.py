"""Bugs in the streams of questions to the owner."""

from tests.mutants.mutant import Mutant

FILE = "broker/authority/streams.py"
STREAMS = "tests/integration/authority/test_owner_streams.py"

MUTANTS = (
    Mutant(
        name="callers of one token share a stream whatever tenant they ask for",
        file=FILE,
        right='    return (bearer, ("x-tenant", caller.tenant_selector))\n',
        wrong="    return (bearer,)\n",
        tests=(f"{STREAMS}::test_a_stream_serves_its_caller_alone",),
    ),
    Mutant(
        name="a stream is given to two questions at once",
        file=FILE,
        right="            stream = streams.pop()\n",
        wrong="            stream = streams[-1]\n",
        tests=(f"{STREAMS}::test_a_stream_carries_one_question_at_a_time",),
    ),
    Mutant(
        name="an answer to the question before counts for the next",
        file=FILE,
        right="        if answer.number != question.number:\n",
        wrong="        if answer.number < 1:\n",
        tests=(f"{STREAMS}::test_an_answer_too_many_is_malformed",),
    ),
    Mutant(
        name="a stream that ended while it waited is asked",
        file=FILE,
        right="            if stream.rpc.done():\n",
        wrong="            if stream.rpc is None:\n",
        tests=(f"{STREAMS}::test_owner_that_began_anew",),
    ),
)
