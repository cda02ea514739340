"""What the clients of a scenario can do: a module for each action, or for a few of one subject."""
