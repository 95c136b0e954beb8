"""Many runs from one plan: what a plan says, where each run stands, and working through them."""
