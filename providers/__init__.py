"""The storage contract of the knowledge broker and its adapters. Nothing here knows the broker."""
