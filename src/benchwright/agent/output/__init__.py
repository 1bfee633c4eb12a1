"""What a program prints or reports: its log, followed while it grows."""
