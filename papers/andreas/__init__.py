"""The figures and tables of ANDREAS, made anew."""
