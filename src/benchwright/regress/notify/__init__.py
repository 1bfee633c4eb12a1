"""Telling others of verdicts: webhooks, GitHub comments and annotations, JUnit. `notify` is the one way in."""
