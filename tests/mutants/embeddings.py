"""The bugs of embeddings; see ``table``."""

from tests.mutants.mutant import Mutant

FAULTS = "tests/integration/embeddings/test_faults.py"
REQUESTS = "tests/integration/embeddings/test_requests.py"

MUTANTS = (
    Mutant(
        name="an endpoint that refuses is left alone",
        file="broker/embeddings/remote.py",
        right="""\
        except AnswerUnusableError as error:
            self._tell(str(error))
            return Ended.ANSWERED,""",
        wrong="""\
        except AnswerUnusableError as error:
            self._tell(str(error))
            return Ended.FAILED,""",
        tests=(FAULTS,),
    ),
    Mutant(
        name="a half-open breaker lets all through",
        file="broker/embeddings/breaker.py",
        right="if self._is_trying or self._monotonic()",
        wrong="if self._monotonic()",
        tests=("tests/unit/embeddings/test_breaker.py",),
    ),
    Mutant(
        name="a name is resolved again after its addresses were looked at",
        file="broker/embeddings/endpoint.py",
        right="self._url.copy_with(host=address)",
        wrong="self._url",
        tests=(REQUESTS,),
    ),
    Mutant(
        name="restricted texts go to an endpoint",
        file="broker/embeddings/remote.py",
        right="        if restricted:\n",
        wrong="        if not texts:\n",
        tests=("tests/unit/embeddings/test_gate.py",),
    ),
)
