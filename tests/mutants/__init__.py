"""Planted bugs: each is put into a copy of the tree, and the tests named for it must go red."""
