"""Answers that are given again while the files stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

from broker.owners.v1 import projects_config_service_pb2 as pb

ANSWERS_MAX: Final = 1_024

_Answer: TypeAlias = pb.GetRunAuthorityResponse


class Remembered:
    """What was answered since a file changed last. Refusals are not kept."""

    def __init__(self) -> None:
        """Knows of no file and no answer yet."""
        self._files: tuple[object, ...] = ()
        self._answers: dict[Hashable, bytes] = {}

    def answer(
        self, files: tuple[object, ...], key: Hashable, decide: Callable[[], _Answer]
    ) -> _Answer:
        """Returns the answer, decided anew unless it was decided by files that said the same.

        Args:
            files: What the files say now.
            key: All else that the answer depends on.
            decide: Makes the answer, or raises a refusal.
        """
        if files != self._files or len(self._answers) >= ANSWERS_MAX:
            self._files = files
            self._answers.clear()
        known = self._answers.get(key)
        if known is not None:
            return _Answer.FromString(known)
        answer = decide()
        self._answers[key] = answer.SerializeToString()
        return answer
