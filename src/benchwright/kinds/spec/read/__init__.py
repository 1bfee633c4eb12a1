"""From a specification's file to its tests."""
