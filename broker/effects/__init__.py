"""Delivers accepted effects to the Events service."""
