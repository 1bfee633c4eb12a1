"""FAI-PEP's remote reporter: messages, the spool they wait in, and sending them."""
