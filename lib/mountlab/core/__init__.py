"""Values, units, errors and text formatting. Imports no other room."""
