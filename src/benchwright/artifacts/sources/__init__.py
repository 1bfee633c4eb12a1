"""Where artifacts are fetched from."""
