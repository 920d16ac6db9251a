"""The context compiler: candidates are screened, ordered, budgeted and rendered. No I/O."""
