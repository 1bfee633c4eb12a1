"""`python -m benchwright`."""

from benchwright.cli.main import main

if __name__ == "__main__":
    main()
