"""Public sources of measurements: fetched, checked and converted to the columns that we read."""
