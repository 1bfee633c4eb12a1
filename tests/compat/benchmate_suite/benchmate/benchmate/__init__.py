"""As much of milabench's benchmate as the suite beside it uses."""
