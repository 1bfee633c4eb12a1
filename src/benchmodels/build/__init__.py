"""Building a model for a runtime, and the cache of builds."""
