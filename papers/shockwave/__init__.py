"""Shockwave's table and figures, made anew."""
