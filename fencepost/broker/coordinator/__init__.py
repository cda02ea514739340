"""What all coordinators share: results, the commit queue, fields of records."""
