"""The rules about governance documents: one class per rule, one module per kind of document.

The name of the class is the code (`StubChecklistShape` is `stub_checklist_shape`), the docstring its title and its
reason, and `workpacket.rules.rule` assigns rules to kinds of documents. Registration is explicit: each module ends
with the tuple of its rules.
"""
