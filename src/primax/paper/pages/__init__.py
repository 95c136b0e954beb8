"""The pages `primax reproduce` writes."""
