"""What the owner gives again, and what makes it decide anew."""

from __future__ import annotations

import pytest

from broker.devstack.owner.refusal import RefusalError, denied
from broker.devstack.owner.remembered import ANSWERS_MAX, Remembered
from broker.owners.v1 import projects_config_service_pb2 as pb


class Decider:
    """Decides something else each time."""

    def __init__(self) -> None:
        self.decided = 0

    def __call__(self) -> pb.GetRunAuthorityResponse:
        self.decided += 1
        context = pb.AuthorizationContext(actor_id=str(self.decided))
        return pb.GetRunAuthorityResponse(context=context)


def test_a_question_is_decided_once_while_the_files_stay() -> None:
    remembered, decide = Remembered(), Decider()
    first = remembered.answer(("keys", "document"), "a", decide)
    again = remembered.answer(("keys", "document"), "a", decide)
    assert first == again
    assert decide.decided == 1
    again.context.actor_id = "changed by whoever got it"
    assert remembered.answer(("keys", "document"), "a", decide) == first
    assert remembered.answer(("keys", "document"), "b", decide) != first


@pytest.mark.parametrize("files", [("other", "document"), ("keys", "other")])
def test_a_file_that_changed_makes_it_forget(files: tuple[str, str]) -> None:
    remembered, decide = Remembered(), Decider()
    for given in (("keys", "document"), files, ("keys", "document")):
        remembered.answer(given, "a", decide)
    assert decide.decided == 3


def test_a_refusal_is_decided_each_time() -> None:
    remembered, decide = Remembered(), Decider()

    def refuse() -> pb.GetRunAuthorityResponse:
        decide()
        raise denied("no")

    for _ in range(2):
        with pytest.raises(RefusalError):
            remembered.answer((), "a", refuse)
    assert decide.decided == 2


def test_it_remembers_a_bounded_number() -> None:
    remembered, decide = Remembered(), Decider()
    for number in range(ANSWERS_MAX + 1):
        remembered.answer((), number, decide)
    remembered.answer((), 0, decide)
    assert decide.decided == ANSWERS_MAX + 2
