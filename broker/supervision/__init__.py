"""Several processes as one broker: workers on one port, restarted when they die, with one health.

Standard library and logging only: the supervisor never loads gRPC, whose threads do not outlive a
fork, and stays small beside its workers.
"""
