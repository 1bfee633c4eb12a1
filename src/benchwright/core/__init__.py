"""The nouns of benchwright, its errors, and files written whole. Nothing else here does I/O."""
