"""Laws of progress, one file each; the engine asks whichever its world has."""
