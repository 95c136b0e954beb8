"""A run on the disk: written, taken up again, read, measured, packed, exported."""
