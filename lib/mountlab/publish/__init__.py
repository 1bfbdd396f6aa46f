"""Hand runs on without the names of machines and people, and check a bundle again."""
