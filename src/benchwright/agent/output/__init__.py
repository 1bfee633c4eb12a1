"""What a program prints or says through voir: its log, followed while it grows."""
