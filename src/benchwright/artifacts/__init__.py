"""Files kept by their content, made once for each."""
