"""The preference solver of PCS: objectives, a search for configurations, the front to choose from. PCS, section 3.3."""
