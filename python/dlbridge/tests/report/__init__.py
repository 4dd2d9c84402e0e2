"""What a run found, as text, JSON, JUnit, Markdown or a page; and two runs compared."""
