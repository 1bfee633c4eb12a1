"""What the user wants to measure, and how."""
