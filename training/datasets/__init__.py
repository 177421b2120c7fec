"""Labels of workloads: published tables, records of others, our own measurements, and splits."""
