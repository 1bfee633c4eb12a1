"""Shared by runtimes: exports, artifacts, torch modules and their sessions, explained failures."""
