"""What a verdict on an approval needs to know of the world, what a person is asked to sign, and what checks find."""
