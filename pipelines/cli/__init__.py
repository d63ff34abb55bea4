"""One file a command: options in, a call into the room, figures out."""
