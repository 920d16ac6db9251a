"""The broker's own PostgreSQL schema, ``knowledge``: what must outlive every provider."""
