"""Files written whole and read without trust."""
