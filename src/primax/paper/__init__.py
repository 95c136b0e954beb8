"""The paper's numbers as data, and what is drawn and printed from them."""
