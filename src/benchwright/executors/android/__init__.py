"""Android devices, reached by the program `adb`."""
