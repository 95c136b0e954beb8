"""Every number the paper states, judged one by one."""
