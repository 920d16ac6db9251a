"""What operators see: one log line per call, and metrics. Never content, tokens or identities."""
