"""Numbers: columns of them, quantities as people write them, and how many become one."""
