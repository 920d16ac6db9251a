"""What every write of content passes: strip, screening, flags, keys, stamps. Pure, no I/O."""
