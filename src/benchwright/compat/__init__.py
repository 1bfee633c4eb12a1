"""Everything that names another tool, one folder for each. Nothing imports it: entry points name what is in it."""
