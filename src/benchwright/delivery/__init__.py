"""Messages to servers that may be slow, down or wrong: one request, a few attempts, and a spool that loses none."""
