"""One variant for every seam of benchwright."""
