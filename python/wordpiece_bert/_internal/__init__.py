"""Modules without a public name: shared by the others, and free to change."""
