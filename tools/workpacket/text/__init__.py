"""Reading text without losing a byte of it: sources, strict loaders, Markdown blocks, schemas, span edits."""
