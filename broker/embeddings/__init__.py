"""Embeddings: a model in this process, or an endpoint that speaks as OpenAI's does.

Nothing here raises because a vector cannot be had: writes and recall by words go on (6.6-15).
"""
