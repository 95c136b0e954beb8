"""Worlds as pictures: in the terminal, as pixels, as GIFs."""
