"""Recall: which terms a text has, how well memories fit a query, in which order they come. Pure."""
