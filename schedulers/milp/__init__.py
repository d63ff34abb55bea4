"""SIA's oracle: the schedule of least total wait that slows nobody, as a mixed-integer programme. SIA, appendix A."""
