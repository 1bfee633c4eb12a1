"""Telling others of verdicts: webhooks, email, GitHub comments and annotations, JUnit. `notify` is the one way in."""
