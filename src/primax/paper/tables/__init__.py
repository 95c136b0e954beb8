"""The paper's tables, and those that stand beside them."""
