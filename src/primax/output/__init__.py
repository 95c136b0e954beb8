"""How numbers, tables and figures are written, whoever writes them."""
