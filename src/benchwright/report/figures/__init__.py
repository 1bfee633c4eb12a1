"""Everything that draws: figures for the terminal, for pages and for notebooks."""
