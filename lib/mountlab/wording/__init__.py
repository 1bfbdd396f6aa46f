"""How verdicts, caveats and what becomes of trials are put into words: for checks, analysis and reports."""
