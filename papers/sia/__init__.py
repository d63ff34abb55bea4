"""SIA's figures and tables, made anew."""
