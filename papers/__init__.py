"""Tables and figures of the papers, made anew and set beside what is printed."""
