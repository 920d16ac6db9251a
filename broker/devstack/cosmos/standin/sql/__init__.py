"""The part of the service's query language that this stand-in knows; all else is refused."""
