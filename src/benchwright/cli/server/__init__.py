"""Commands of the server that shares a store."""
