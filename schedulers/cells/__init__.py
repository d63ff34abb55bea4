"""Locality: quotas in cells, jobs whose GPUs lie together. SIA, section 5.5; Zhao et al.: HiveD, OSDI 2020."""
