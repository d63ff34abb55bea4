"""The figures of PCS made anew; see docs/pcs.md."""
