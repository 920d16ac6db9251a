"""A reference Projects & Config owner: real rules on a file that may change at any moment."""

from broker.devstack.owner.server import OwnerServer
from broker.devstack.owner.servicer import ProjectsConfigServicer

__all__ = ["OwnerServer", "ProjectsConfigServicer"]
