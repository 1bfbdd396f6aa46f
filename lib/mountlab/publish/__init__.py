"""Export figures and tables, hand runs on without the names of machines and people, and check a bundle again."""
