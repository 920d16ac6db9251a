"""What private servers have in common: a life no longer than their owner's, a lock, a log."""
