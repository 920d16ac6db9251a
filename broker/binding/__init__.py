"""From a run's accepted selection to its one pinned provider, for ever, without a fall-back."""
