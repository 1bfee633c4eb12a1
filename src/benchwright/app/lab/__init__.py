"""The devices of a lab: what there is, which ones a run means, and runs on several of them at once."""
