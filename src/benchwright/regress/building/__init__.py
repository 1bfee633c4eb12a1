"""How revisions are built: their environments, frameworks' scripts, and what is kept of them."""
