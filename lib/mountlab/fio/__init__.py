"""fio: its options, job files, command lines and reports."""
