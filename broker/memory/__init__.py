"""The write engine: what becomes of text that is to be remembered. Pure."""
