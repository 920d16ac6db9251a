"""A reference Events service: takes accepted effects as facts of their projects (004-80)."""

from broker.devstack.events.server import EventsOptions, EventsServer

__all__ = ["EventsOptions", "EventsServer"]
