"""What launches of models leave, as measurements and facts."""
