"""What measured programs find around them."""
