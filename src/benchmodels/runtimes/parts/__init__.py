"""What several runtimes use: exports, artifacts, torch modules and their sessions, explained failures."""
