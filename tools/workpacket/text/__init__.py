"""Read text without losing a byte: sources, strict loaders, Markdown blocks, schemas, span edits."""
