"""A person's own key: found, made, tried and signed with by `ssh-keygen`, never read."""
