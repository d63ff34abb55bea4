"""How results are shown: numbers and times, tables, plots and pages."""
