"""Pure values that every other layer speaks in. Nothing here touches the world."""
