"""What reports say, in sentences, as text for the terminal and as data: of each kind of result a module."""
