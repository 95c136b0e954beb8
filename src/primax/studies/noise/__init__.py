"""Noise that never ends: who is held by it, who leaves it, and what of PRIME that takes."""
