"""Generated from proto/; never edited."""
