"""Measurements, by hand: no test runs them."""
