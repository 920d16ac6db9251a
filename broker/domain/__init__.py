"""Pure rules: requests and heads in, write sets and refusals out. No I/O."""
