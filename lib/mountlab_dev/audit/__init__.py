"""`make audit`: what is known to be wrong with the libraries of requirements.lock, and secrets and permissions of the
tree. What could not be looked at is said, and is no pass."""

from mountlab_dev.audit.look import Outcome, audit

__all__ = ["Outcome", "audit"]
