"""What requests to a server took, of every kind whose program is our client: measurements, doubts and the report."""
