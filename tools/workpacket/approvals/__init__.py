"""Who approved which bytes: statements, envelopes, signatures, the policy that judges them, and the verdict of a gate.

Pure: clock, nonce, policy files, envelopes and the state of the ledger are parameters. `workpacket.shell` gathers them
and calls `ssh-keygen` to sign. The rules, and which module judges each:

- the bytes are what they claim to be (`envelope`, `statement`, `sshsig`): one file, one statement, one signature, each
  in its canonical form;
- the key belongs to a person listed in the base revision's policy (`allowed_signers`, `revoked_keys`, `verify`);
- the statement is about this packet, gate, repository, text and specification, and is still valid (`verify`);
- enough different people have approved, none of them is judging their own work, and none of them has rejected it
  (`decide`).
"""
