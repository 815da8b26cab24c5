"""The tour: what Linkwise does, shown and checked on one robot, with a report to keep."""
