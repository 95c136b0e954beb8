"""Doors for other people's libraries; each is imported only when it is asked for."""
