"""Drives a running broker with whole conversations and checks every record that they leave."""
