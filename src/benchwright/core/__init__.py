"""The nouns of benchwright, and its errors. Nothing here does I/O."""
