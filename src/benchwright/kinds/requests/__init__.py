"""Requests to a server, for every kind whose program is our client: measurements, doubts and the report."""
